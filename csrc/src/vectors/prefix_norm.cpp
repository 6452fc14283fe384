#include "hsca/vectors/prefix_norm.hpp"

#include <atomic>
#include <bit>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace hsca {

bool prefix_tiers(const Rows& rows, std::span<const std::size_t> dims, double eps, std::size_t threads, Isa isa,
                  Stop::Poll poll, std::span<float* const> tiers, bool& is_finite) {
    if (dims.size() != tiers.size()) throw std::invalid_argument("prefix_tiers: one matrix for each of dims");
    for (std::size_t t = 0; t < dims.size(); ++t) {
        if (dims[t] > rows.dims || (t > 0 && dims[t] <= dims[t - 1])) {
            throw std::invalid_argument("prefix_tiers: dims must increase and fit the vectors");
        }
    }
    const VectorKernels& kernels = vector_kernels(isa);
    Stop stop(poll);
    std::atomic<bool> all_finite{true};
    const bool finished =
        parallel_for(rows.n, threads, 1024, stop, [&](std::size_t, std::size_t begin, std::size_t end) {
            std::vector<float*> at(tiers.size());
            for (std::size_t i = begin; i < end; ++i) {
                for (std::size_t t = 0; t < at.size(); ++t) at[t] = tiers[t] + i * dims[t];
                const double sum =
                    kernels.prefix_norm(rows.row(i), dims.data(), dims.size(), eps * eps, at.data(), nullptr);
                // Squares of float32 numbers cannot overflow float64.
                if (!std::isfinite(sum)) all_finite.store(false, std::memory_order_relaxed);
            }
        });
    is_finite = all_finite.load();
    return finished;
}

void prefix_inverse(const Rows& rows, std::size_t width, double eps, Isa isa, std::span<float> inverse) {
    if (width > rows.dims || inverse.size() != rows.n)
        throw std::invalid_argument("prefix_inverse: sizes do not match");
    const VectorKernels& kernels = vector_kernels(isa);
    for (std::size_t i = 0; i < rows.n; ++i) {
        kernels.prefix_norm(rows.row(i), &width, 1, eps * eps, nullptr, &inverse[i]);
    }
}

bool are_extreme(std::span<const float> inverse) noexcept {
    for (const float x : inverse) {
        if (x != 0.0f && (x < 1e-12f || x > 1e12f)) return true;
    }
    return false;
}

std::vector<float> unit_rows(const Rows& rows, Isa isa) {
    std::vector<float> unit(rows.n * rows.dims);
    const VectorKernels& kernels = vector_kernels(isa);
    for (std::size_t i = 0; i < rows.n; ++i) {
        float* const out = unit.data() + i * rows.dims;
        kernels.prefix_norm(rows.row(i), &rows.dims, 1, 0.0, &out, nullptr);
    }
    return unit;
}

void finite_rows(const Rows& rows, std::span<std::uint8_t> finite) {
    if (finite.size() != rows.n) throw std::invalid_argument("finite_rows: sizes do not match");
    constexpr std::uint32_t kExponent = 0x7F800000u;  // all ones: infinite or not a number
    for (std::size_t i = 0; i < rows.n; ++i) {
        std::uint32_t bad = 0;
        for (std::size_t j = 0; j < rows.dims; ++j) {
            bad |= (std::bit_cast<std::uint32_t>(rows.row(i)[j]) & kExponent) == kExponent;
        }
        finite[i] = bad == 0;
    }
}

}  // namespace hsca
