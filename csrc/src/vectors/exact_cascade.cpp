#include "hsca/vectors/exact_cascade.hpp"

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <stdexcept>

namespace hsca {

namespace {

constexpr std::size_t kScanBlock = 4;  // queries of a scan that share a pass over the rows

// Queries that share a pass over the codes: a pass reads memory, and the sums of each query need some.
std::size_t query_block(std::size_t n_rows, std::size_t n_queries, std::size_t threads) noexcept {
    constexpr std::size_t kLeast = 4, kMost = 16, kSums = std::size_t{1} << 24;
    const std::size_t fitting = std::clamp(kSums / std::max<std::size_t>(1, n_rows), kLeast, kMost);
    // Every worker has some.
    return std::clamp((n_queries + threads - 1) / threads, std::size_t{1}, fitting);
}
constexpr std::size_t kLeastSeeds = 128;

void check(const Tier& tier, const Rows& queries, std::size_t k, std::size_t n_rows, std::size_t n_scores) {
    const TierShape& shape = tier.shape;
    if (shape.segments != segment_count(shape.width) || shape.lead == 0 || shape.lead > shape.segments ||
        tier.rows.dims < shape.width || queries.dims != shape.width || n_rows != queries.n * k || n_scores != n_rows ||
        tier.rows.n >= kNoRow) {
        throw std::invalid_argument("search_tier: sizes do not match");
    }
}

void write(std::span<const ScoredRow> found, std::size_t k, std::uint32_t* rows, float* scores) {
    for (std::size_t i = 0; i < k; ++i) {
        rows[i] = i < found.size() ? found[i].row : kNoRow;
        scores[i] = i < found.size() ? found[i].score : 0.0f;
    }
}

// One worker's memory, and the search of a few queries at a time.
class TierSearch {
  public:
    TierSearch(const Tier& tier, std::size_t k, bool candidates, std::size_t query_block, Isa isa)
        : tier_(tier),
          kernels_(vector_kernels(isa)),
          k_(std::min(k, tier.rows.n)),
          candidates_(candidates),
          n_groups_((tier.rows.n + kGroupRows - 1) / kGroupRows),
          n_seeds_(std::min(std::max(k_, kLeastSeeds), tier.rows.n)),
          seeds_(n_seeds_, nullptr),
          best_(k_, tier.ids),
          sums_(new std::int32_t[query_block * n_groups_ * kGroupRows]),
          taken_(tier.rows.n),
          coded_(query_block) {}

    bool run(const Rows& queries, std::size_t begin, std::size_t end, std::size_t k, Stop& stop, std::uint32_t* rows,
             float* scores, SearchWork& work) {
        const std::size_t count = end - begin, lead_dims = tier_.shape.lead * kSegment;
        lead_codes_.resize(count * lead_dims);
        for (std::size_t q = 0; q < count; ++q) {
            coded_[q].encode(queries.row(begin + q), tier_.shape, kernels_);
            std::copy_n(coded_[q].codes.begin(), lead_dims,
                        lead_codes_.begin() + static_cast<std::ptrdiff_t>(q * lead_dims));
        }
        if (!compare_leading(count, stop)) return false;
        for (std::size_t q = 0; q < count; ++q) {
            query_ = queries.row(begin + q);
            best_.clear();
            score_seeds(q, work);
            if (!score_others(q, stop, work)) return false;
            write(candidates_ ? best_.best_first() : best_.sorted(), k, rows + q * k, scores + q * k);
        }
        work.rows += count * tier_.rows.n;
        return true;
    }

  private:
    bool is_allowed(std::size_t row) const noexcept { return !tier_.allowed || tier_.allowed[row]; }
    std::int32_t* sums(std::size_t q) noexcept { return sums_.get() + q * n_groups_ * kGroupRows; }

    bool compare_leading(std::size_t count, Stop& stop) {
        // As many groups as stay in the cache while the queries pass over them.
        const std::size_t block = std::max<std::size_t>(4, 64 / tier_.shape.lead);
        for (std::size_t g = 0; g < n_groups_; g += block) {
            if (stop.requested()) return false;
            kernels_.code_groups(lead_codes_.data(), count, tier_.lead + g * tier_.shape.lead * kGroupBytes,
                                 std::min(block, n_groups_ - g), tier_.shape.lead, n_groups_ * kGroupRows,
                                 sums_.get() + g * kGroupRows);
        }
        return true;
    }

    void score(std::span<const std::uint32_t> rows, SearchWork& work) {
        scores_.resize(rows.size());
        kernels_.dot_picked(query_, tier_.rows.data, tier_.rows.stride, rows.data(), rows.size(), tier_.shape.width,
                            scores_.data());
        for (std::size_t i = 0; i < rows.size(); ++i) best_.push(scores_[i] * tier_.inverse[rows[i]], rows[i]);
        work.scored += rows.size();
    }

    float estimate(std::size_t q, std::size_t row) noexcept {
        return static_cast<float>(sums(q)[row]) * (tier_.scale[row] * coded_[q].step);
    }

    // A score that somewhat more rows than the seeds reach, by a sample: far fewer rows are looked at one by one.
    float seed_bar(std::size_t q) {
        const std::size_t step = tier_.rows.n / kSample;
        if (step < 2 || tier_.allowed) return -std::numeric_limits<float>::infinity();
        scores_.clear();
        for (std::size_t row = 0; row < tier_.rows.n; row += step) scores_.push_back(estimate(q, row));
        const double wanted = static_cast<double>(n_seeds_) / static_cast<double>(step);
        const auto rank = static_cast<std::size_t>(wanted + 3.0 * std::sqrt(wanted) + 4.0);
        if (rank >= scores_.size()) return -std::numeric_limits<float>::infinity();
        const auto at = scores_.begin() + static_cast<std::ptrdiff_t>(rank);
        std::nth_element(scores_.begin(), at, scores_.end(), std::greater<>());
        return *at;
    }

    void find_seeds(std::size_t q, float bar) {
        const BoundTerms estimates{coded_[q].step, 0.0f, 0.0f, 0.0f};
        seeds_.clear();
        seeds_.raise_least(bar);
        found_.resize(kBlockRows + 16);
        for (std::size_t first = 0; first < tier_.rows.n; first += kBlockRows) {
            const std::size_t n = std::min(kBlockRows, tier_.rows.n - first);
            const std::size_t count = kernels_.select_bounds(sums(q) + first, tier_.scale + first, tier_.error + first,
                                                             nullptr, n, estimates, seeds_.least(), found_.data());
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t row = first + found_[i];
                if (is_allowed(row)) seeds_.push(estimate(q, row), static_cast<std::uint32_t>(row));
            }
        }
    }

    // The rows that look best by their leading codes set the bar for the others.
    void score_seeds(std::size_t q, SearchWork& work) {
        const float bar = seed_bar(q);
        find_seeds(q, bar);
        if (seeds_.size() < n_seeds_ && bar > -std::numeric_limits<float>::infinity()) {
            find_seeds(q, -std::numeric_limits<float>::infinity());  // the sample misled
        }
        seeded_.clear();
        for (const ScoredRow& seed : seeds_.best_first()) seeded_.push_back(seed.row);
        score(seeded_, work);
        best_.trim();
    }

    bool score_others(std::size_t q, Stop& stop, SearchWork& work) {
        const TierShape& shape = tier_.shape;
        const std::size_t later = shape.segments - shape.lead;
        for (const std::uint32_t row : seeded_) taken_[row] = 1;
        bool finished = true;
        for (std::size_t first = 0; first < tier_.rows.n; first += kBlockRows) {
            if (stop.requested()) {
                finished = false;
                break;
            }
            const std::size_t n = std::min(kBlockRows, tier_.rows.n - first);
            const BoundTerms leading = coded_[q].terms(shape.lead, shape.width);
            const std::size_t count =
                kernels_.select_bounds(sums(q) + first, tier_.scale + first, tier_.error + first,
                                       tier_.lead_residual + first, n, leading, best_.least(), found_.data());
            picked_.clear();
            partial_.clear();
            for (std::size_t i = 0; i < count; ++i) {
                const std::size_t row = first + found_[i];
                if (taken_[row] || !is_allowed(row)) continue;
                picked_.push_back(static_cast<std::uint32_t>(row));
                partial_.push_back(sums(q)[row]);
            }
            for (std::size_t m = 1; m <= later && !picked_.empty(); ++m) compare_segment(q, m, work);
            if (!picked_.empty()) score(picked_, work);
        }
        for (const std::uint32_t row : seeded_) taken_[row] = 0;
        return finished;
    }

    // One more segment of the picked rows; those whose bound falls short are dropped.
    void compare_segment(std::size_t q, std::size_t m, SearchWork& work) {
        const TierShape& shape = tier_.shape;
        const std::size_t later = shape.segments - shape.lead;
        const BoundTerms terms = coded_[q].terms(shape.lead + m, shape.width);
        kernels_.code_picked(coded_[q].codes.data() + (shape.lead + m - 1) * kSegment, tier_.tail + (m - 1) * kSegment,
                             shape.tail_bytes(), picked_.data(), picked_.size(), partial_.data());
        work.segments += picked_.size();
        std::size_t kept = 0;
        constexpr std::size_t kAhead = 16;
        for (std::size_t i = 0; i < picked_.size(); ++i) {
            if (m < later && i + kAhead < picked_.size()) {
                __builtin_prefetch(&tier_.residual[picked_[i + kAhead] * (later - 1) + m - 1]);
            }
            const std::size_t row = picked_[i];
            const float residual = m < later ? tier_.residual[row * (later - 1) + m - 1] : 0.0f;
            const float bound = row_bound(partial_[i], tier_.scale[row], tier_.error[row], residual, terms);
            picked_[kept] = picked_[i];
            partial_[kept] = partial_[i];
            kept += bound >= best_.least();
        }
        picked_.resize(kept);
        partial_.resize(kept);
    }

    static constexpr std::size_t kBlockRows = 4096, kSample = 2048;
    const Tier& tier_;
    const VectorKernels& kernels_;
    std::size_t k_;
    bool candidates_;
    std::size_t n_groups_, n_seeds_;
    TopK seeds_, best_;
    std::unique_ptr<std::int32_t[]> sums_;  // not cleared: pages are touched as they are needed
    std::vector<std::int32_t> partial_;
    std::vector<std::uint8_t> taken_;
    std::vector<std::int8_t> lead_codes_;
    std::vector<std::uint32_t> found_, picked_, seeded_;
    std::vector<float> scores_;
    std::vector<CodedQuery> coded_;
    const float* query_ = nullptr;
};

}  // namespace

bool search_tier(const Tier& tier, const Rows& queries, std::size_t k, bool candidates, std::size_t threads, Isa isa,
                 Stop::Poll poll, std::span<std::uint32_t> out_rows, std::span<float> out_scores, SearchWork* work) {
    check(tier, queries, k, out_rows.size(), out_scores.size());
    threads = std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(1, queries.n));
    std::vector<std::unique_ptr<TierSearch>> searches(threads);
    std::vector<SearchWork> done(threads);
    Stop stop(poll);
    const std::size_t block = query_block(tier.rows.n, queries.n, threads);
    const bool finished =
        parallel_for(queries.n, threads, block, stop, [&](std::size_t worker, std::size_t begin, std::size_t end) {
            if (!searches[worker]) searches[worker] = std::make_unique<TierSearch>(tier, k, candidates, block, isa);
            searches[worker]->run(queries, begin, end, k, stop, out_rows.data() + begin * k,
                                  out_scores.data() + begin * k, done[worker]);
        });
    if (work) {
        for (const SearchWork& part : done) {
            work->rows += part.rows;
            work->scored += part.scored;
            work->segments += part.segments;
        }
    }
    return finished;
}

bool scan_tier(const Tier& tier, const Rows& queries, std::size_t k, std::size_t threads, Isa isa, Stop::Poll poll,
               std::span<std::uint32_t> out_rows, std::span<float> out_scores) {
    check(tier, queries, k, out_rows.size(), out_scores.size());
    const VectorKernels& kernels = vector_kernels(isa);
    constexpr std::size_t kBlockRows = 64;
    Stop stop(poll);
    return parallel_for(queries.n, threads, kScanBlock, stop, [&](std::size_t, std::size_t begin, std::size_t end) {
        std::vector<TopK> best(end - begin, TopK(std::min(k, tier.rows.n), tier.ids));
        float scores[kBlockRows];
        for (std::size_t first = 0; first < tier.rows.n; first += kBlockRows) {
            if (stop.requested()) return;
            const std::size_t n = std::min(kBlockRows, tier.rows.n - first);
            for (std::size_t q = begin; q < end; ++q) {
                kernels.dot_rows(queries.row(q), tier.rows.row(first), tier.rows.stride, n, tier.shape.width, scores);
                for (std::size_t i = 0; i < n; ++i) {
                    if (tier.allowed && !tier.allowed[first + i]) continue;
                    best[q - begin].push(scores[i] * tier.inverse[first + i], static_cast<std::uint32_t>(first + i));
                }
            }
        }
        for (std::size_t q = begin; q < end; ++q) {
            write(best[q - begin].sorted(), k, out_rows.data() + q * k, out_scores.data() + q * k);
        }
    });
}

}  // namespace hsca
