#include "hsca/vectors/funnel.hpp"

#include <stdexcept>
#include <vector>

namespace hsca {

bool narrow(const Rows& rows, const float* inverse, const std::int64_t* ids, const Rows& queries,
            std::span<const std::uint32_t> candidates, std::size_t keep, bool candidates_only, std::size_t threads,
            Isa isa, Stop::Poll poll, std::span<std::uint32_t> out_rows, std::span<float> out_scores) {
    const std::size_t n = queries.n;
    if (n == 0) return true;
    if (candidates.size() % n != 0 || queries.dims > rows.dims || out_rows.size() != n * keep ||
        out_scores.size() != n * keep) {
        throw std::invalid_argument("narrow: sizes do not match");
    }
    for (const std::uint32_t row : candidates) {
        if (row != kNoRow && row >= rows.n) throw std::out_of_range("narrow: no such row");
    }
    const std::size_t length = candidates.size() / n;
    const VectorKernels& kernels = vector_kernels(isa);
    Stop stop(poll);
    return parallel_for(n, threads, 8, stop, [&](std::size_t, std::size_t begin, std::size_t end) {
        std::vector<std::uint32_t> picked;
        std::vector<float> scores(length);
        TopK best(keep, ids);
        for (std::size_t q = begin; q < end && !stop.requested(); ++q) {
            picked.clear();
            best.clear();
            for (const std::uint32_t row : candidates.subspan(q * length, length)) {
                if (row != kNoRow) picked.push_back(row);
            }
            kernels.dot_picked(queries.row(q), rows.data, rows.stride, picked.data(), picked.size(), queries.dims,
                               scores.data());
            for (std::size_t i = 0; i < picked.size(); ++i) best.push(scores[i] * inverse[picked[i]], picked[i]);
            const std::span<const ScoredRow> found = candidates_only ? best.best_first() : best.sorted();
            for (std::size_t i = 0; i < keep; ++i) {
                out_rows[q * keep + i] = i < found.size() ? found[i].row : kNoRow;
                out_scores[q * keep + i] = i < found.size() ? found[i].score : 0.0f;
            }
        }
    });
}

}  // namespace hsca
