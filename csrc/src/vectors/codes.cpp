#include "hsca/vectors/codes.hpp"

#include <algorithm>
#include <cmath>
#include <stdexcept>

namespace hsca {

namespace {

// float32 arithmetic on values of length 1 at most is off by far less than this.
constexpr double kNoise = 1e-6;

float rounded_up(double x) noexcept { return static_cast<float>(x + kNoise); }

struct SegmentSums {
    std::vector<double> rest;  // |x[64 m:]| for m = 0 .. segments, the last 0
    double error = 0.0;        // |x - scale * code|

    // Codes of x[:width] * factor, zeros behind.
    void quantise(const VectorKernels& kernels, const float* x, float factor, float scale, const TierShape& shape,
                  std::int8_t* codes) {
        rest.assign(shape.segments + 1, 0.0);
        error = 0.0;
        for (std::size_t m = 0; m < shape.segments; ++m) {
            const std::size_t left = shape.width - m * kSegment;
            const float* segment = x + m * kSegment;
            float padded[kSegment] = {}, squares, missed;
            if (left < kSegment) {
                std::copy_n(segment, left, padded);
                segment = padded;
            }
            kernels.quantise(segment, factor, scale, codes + m * kSegment, &squares, &missed);
            rest[m] = squares;
            error += missed;
        }
        for (std::size_t m = shape.segments; m-- > 0;) rest[m] += rest[m + 1];
        for (double& length : rest) length = std::sqrt(length);
        error = std::sqrt(error);
    }
};

std::uint8_t stored(std::int8_t code) noexcept { return static_cast<std::uint8_t>(code + kCodeOffset); }

}  // namespace

std::size_t leading_segments(const Rows& rows, std::size_t width, double share) {
    const std::size_t segments = segment_count(width);
    // A few hundred rows evenly spread tell the spectrum well enough; any answer gives the same results.
    const std::size_t step = std::max<std::size_t>(1, rows.n / 256);
    std::vector<double> left(segments + 1, 0.0);
    for (std::size_t i = 0; i < rows.n; i += step) {
        double sum = 0.0;
        std::vector<double> behind(segments + 1, 0.0);
        for (std::size_t j = width; j-- > 0;) {
            sum += static_cast<double>(rows.row(i)[j]) * rows.row(i)[j];
            if (j % kSegment == 0) behind[j / kSegment] = sum;
        }
        if (sum == 0.0) continue;
        for (std::size_t m = 0; m <= segments; ++m) left[m] += behind[m] / sum;
    }
    std::size_t lead = 1;
    while (lead < segments && left[lead] > (1.0 - share) * left[0]) ++lead;
    return lead;
}

bool encode_tier(const Rows& rows, std::size_t begin, std::size_t end, const TierShape& shape, double eps, Isa isa,
                 Stop& stop, const TierColumns& out) {
    if (shape.width > kMaxWidth) throw std::invalid_argument("encode_tier: vectors too wide");
    const VectorKernels& kernels = vector_kernels(isa);
    const std::size_t padded = shape.segments * kSegment, tail = shape.tail_bytes(),
                      later = shape.segments - shape.lead;
    std::vector<std::int8_t> codes(padded);
    SegmentSums sums;
    for (std::size_t i = begin; i < end; ++i) {
        if (i % 1024 == 0 && stop.requested()) return false;
        const float* row = rows.row(i);
        kernels.prefix_norm(row, &shape.width, 1, eps * eps, nullptr, &out.inverse[i]);
        out.scale[i] = kernels.largest(row, shape.width) * out.inverse[i] / 127.0f;
        sums.quantise(kernels, row, out.inverse[i], out.scale[i], shape, codes.data());
        out.error[i] = rounded_up(sums.error);
        out.lead_residual[i] = rounded_up(sums.rest[shape.lead]);
        for (std::size_t m = 1; m < later; ++m) {
            out.residual[i * (later - 1) + m - 1] = rounded_up(sums.rest[shape.lead + m]);
        }
        std::uint8_t* group = out.lead + i / kGroupRows * shape.lead * kGroupBytes + i % kGroupRows * 4;
        for (std::size_t j = 0; j < shape.lead * kSegment; ++j) group[j / 4 * 64 + j % 4] = stored(codes[j]);
        for (std::size_t j = 0; j < tail; ++j) out.tail[i * tail + j] = stored(codes[shape.lead * kSegment + j]);
    }
    return true;
}

void leading_codes(const TierShape& shape, const std::uint8_t* lead, std::size_t row, std::int8_t* codes) {
    const std::uint8_t* group = lead + row / kGroupRows * shape.lead * kGroupBytes + row % kGroupRows * 4;
    for (std::size_t j = 0; j < shape.lead * kSegment; ++j) {
        codes[j] = static_cast<std::int8_t>(group[j / 4 * 64 + j % 4] - kCodeOffset);
    }
}

void CodedQuery::encode(const float* query, const TierShape& shape, const VectorKernels& kernels) {
    codes.resize(shape.segments * kSegment);
    step = kernels.largest(query, shape.width) / 127.0f;
    SegmentSums sums;
    sums.quantise(kernels, query, 1.0f, step, shape, codes.data());
    error = sums.error + kNoise;
    rest = std::move(sums.rest);
}

BoundTerms CodedQuery::terms(std::size_t compared, std::size_t width) const noexcept {
    return {step, rounded_up(rest[0] + error), rounded_up(rest[compared]), rounded_up(error + rounding_slack(width))};
}

}  // namespace hsca
