#include "hsca/vectors/static_model.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <stdexcept>
#include <vector>

namespace hsca {

namespace {

void add_row(const std::int8_t* __restrict row, float scale, std::size_t dim, float* __restrict sum) {
    for (std::size_t i = 0; i < dim; ++i) sum[i] += scale * static_cast<float>(row[i]);
}

double square_sum(const float* values, std::size_t n) {
    std::array<double, 8> lanes{};
    std::size_t i = 0;
    for (; i + 8 <= n; i += 8) {
        for (std::size_t lane = 0; lane < 8; ++lane) {
            const double x = values[i + lane];
            lanes[lane] += x * x;
        }
    }
    for (; i < n; ++i) lanes[i % 8] += static_cast<double>(values[i]) * values[i];
    return ((lanes[0] + lanes[4]) + (lanes[2] + lanes[6])) + ((lanes[1] + lanes[5]) + (lanes[3] + lanes[7]));
}

}  // namespace

bool embed_texts(const WordPiece& tokenizer, const StaticModel& model, std::span<const std::string_view> texts,
                 std::size_t dim, std::size_t threads, Stop::Poll poll, std::span<float> out) {
    if (model.scales.size() != tokenizer.size() || model.rows.size() != model.scales.size() * model.width)
        throw std::invalid_argument("the model needs one row and one scale a token of the vocabulary");
    if (dim == 0 || dim > model.width) throw std::invalid_argument("dim must be between 1 and the model's width");
    if (out.size() != texts.size() * dim) throw std::invalid_argument("out must have dim numbers a text");
    Stop stop(poll);
    std::vector<std::vector<std::int32_t>> ids(std::max<std::size_t>(1, threads));
    return parallel_for(texts.size(), threads, 16, stop, [&](std::size_t worker, std::size_t begin, std::size_t end) {
        for (std::size_t text = begin; text < end; ++text) {
            ids[worker].clear();
            if (!tokenizer.encode(texts[text], ids[worker], stop)) return;
            float* sum = out.data() + text * dim;
            std::fill_n(sum, dim, 0.0f);
            for (std::size_t i = 0; i < ids[worker].size(); ++i) {
                if (i % 8192 == 0 && stop.requested()) return;
                const auto token = static_cast<std::size_t>(ids[worker][i]);
                add_row(model.rows.data() + token * model.width, model.scales[token], dim, sum);
            }
            const double norm = std::sqrt(square_sum(sum, dim));
            if (norm > 0.0) {
                const double inverse = 1.0 / norm;
                for (std::size_t i = 0; i < dim; ++i) sum[i] = static_cast<float>(sum[i] * inverse);
            }
        }
    });
}

}  // namespace hsca
