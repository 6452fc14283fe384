// candidate_blocks.hpp -- runs a kernel over all candidates, block by block, on threads; and keeps the best rows while
// a block's scores are still in the first-level cache.
//
// `score(begin, count, out)` is one call of a kernel of candidate_kernels.hpp and returns what it returns. A block's
// scores do not depend on any other block, so neither threads nor block sizes change a result.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

#include "hsca/parallel.hpp"
#include "hsca/ranking/best_rows.hpp"
#include "hsca/ranking/candidate_kernels.hpp"

namespace hsca {

enum class Outcome {
    done,
    refused,  // an input was not finite, or a scope not known
    stopped,  // by `poll`
};

struct Workers {
    std::size_t threads = 1;
    Stop::Poll poll = nullptr;
    Isa isa = best_isa();
};

inline constexpr std::size_t kCandidateGrain = 16384, kCandidateBlock = 1024;

template <class T, class Score>
Outcome score_candidates(std::size_t n, const Workers& workers, T* out, const Score& score) {
    std::atomic<bool> refused{false};
    Stop stop(workers.poll);
    const bool finished =
        parallel_for(n, workers.threads, kCandidateGrain, stop, [&](std::size_t, std::size_t begin, std::size_t end) {
            if (score(begin, end - begin, out + begin)) refused = true;
        });
    return refused ? Outcome::refused : finished ? Outcome::done : Outcome::stopped;
}

template <class T>
struct BestCandidates {
    std::vector<ScoredRow<T>> rows;
    Outcome outcome;
};

// `visit(best, begin, end)` offers the rows of a range that may be among the best, in ascending order, and returns true
// when it refuses an input.
template <class T, class Visit>
BestCandidates<T> best_of_ranges(std::size_t n, std::size_t k, const Workers& workers, const Visit& visit) {
    if (k == 0) throw std::invalid_argument("k must be at least 1");
    k = std::min(k, std::max<std::size_t>(n, 1));
    std::vector<BestRows<T>> best(std::clamp<std::size_t>(workers.threads, 1, n / kCandidateGrain + 1), BestRows<T>(k));
    std::atomic<bool> refused{false};
    Stop stop(workers.poll);
    const bool finished = parallel_for(n, best.size(), kCandidateGrain, stop,
                                       [&](std::size_t worker, std::size_t begin, std::size_t end) {
                                           if (visit(best[worker], begin, end)) refused = true;
                                       });
    for (std::size_t worker = 1; worker < best.size(); ++worker) best[0].merge(best[worker]);
    const auto rows = best[0].finish();
    return {{rows.begin(), rows.end()}, refused ? Outcome::refused : finished ? Outcome::done : Outcome::stopped};
}

template <class T, class Score>
BestCandidates<T> best_candidates(std::size_t n, std::size_t k, const Workers& workers, const Score& score) {
    constexpr std::size_t kPart = 64;
    const auto count_above = candidate_kernels<T>(workers.isa).count_above;
    return best_of_ranges<T>(n, k, workers, [&](BestRows<T>& best, std::size_t begin, std::size_t end) {
        bool refused = false;
        std::array<T, kCandidateBlock> scores;
        for (std::size_t i = begin; i < end; i += kCandidateBlock) {
            const std::size_t count = std::min(kCandidateBlock, end - i);
            if (score(i, count, scores.data())) refused = true;
            // Few blocks hold a row that matters, and few parts of those.
            if (!count_above(scores.data(), count, best.floor())) continue;
            for (std::size_t part = 0; part < count; part += kPart) {
                const std::span<const T> some(scores.data() + part, std::min(kPart, count - part));
                if (count_above(some.data(), some.size(), best.floor())) {
                    best.offer(some, static_cast<std::int64_t>(i + part));
                }
            }
        }
        return refused;
    });
}

}  // namespace hsca
