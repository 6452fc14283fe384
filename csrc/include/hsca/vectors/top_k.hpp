// top_k.hpp -- the k best of a stream of scored rows, ties by id: (score descending, id ascending).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace hsca {

inline constexpr std::uint32_t kNoRow = 0xFFFFFFFFu;

struct ScoredRow {
    float score;
    std::uint32_t row;
};

// Keeps up to twice k and halves when full: constant time a row on average, and rows below `least()` need no push.
class TopK {
    struct Before {
        const std::int64_t* ids;
        bool operator()(const ScoredRow& a, const ScoredRow& b) const noexcept {
            if (a.score != b.score) return a.score > b.score;
            return ids ? ids[a.row] < ids[b.row] : a.row < b.row;
        }
    };

  public:
    // `ids` has one element for each row; without it the row number is the id.
    TopK(std::size_t k, const std::int64_t* ids) : k_(k), ids_(ids) {}

    // A row with a lower score cannot be among the k best.
    float least() const noexcept { return least_; }

    // Rows below `least` are not wanted: the caller knows that k others exist.
    void raise_least(float least) noexcept { least_ = std::max(least_, least); }

    std::size_t size() const noexcept { return kept_.size(); }

    void push(float score, std::uint32_t row) {
        if (k_ == 0 || score < least_) return;
        kept_.push_back({score, row});
        if (kept_.size() >= 2 * k_ + 64) trim();
    }

    // Leaves at most k, in no order, and makes least() as high as it can be.
    void trim() {
        if (k_ == 0 || kept_.size() < k_) return;
        const auto kth = kept_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
        std::nth_element(kept_.begin(), kth, kept_.end(), Before{ids_});
        least_ = kth->score;
        kept_.resize(k_);
    }

    // The best rows in order.
    std::span<const ScoredRow> sorted() {
        trim();
        std::sort(kept_.begin(), kept_.end(), Before{ids_});
        return kept_;
    }

    // The best row, then the others in no order.
    std::span<const ScoredRow> best_first() {
        trim();
        if (!kept_.empty()) std::iter_swap(kept_.begin(), std::min_element(kept_.begin(), kept_.end(), Before{ids_}));
        return kept_;
    }

    void clear() noexcept {
        kept_.clear();
        least_ = -std::numeric_limits<float>::infinity();
    }

  private:
    std::size_t k_;
    const std::int64_t* ids_;
    std::vector<ScoredRow> kept_;
    float least_ = -std::numeric_limits<float>::infinity();
};

}  // namespace hsca
