// best_rows.hpp -- the k best rows of a stream of scores, ordered by (score descending, row ascending).
//
// Rows that may belong are collected in a buffer a few times k; when it is full all but the k best go, and the worst of
// those becomes the floor that later scores must pass. Linear in the number of rows whatever their order.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

namespace hsca {

template <class T>
struct ScoredRow {
    T score;
    std::int64_t row;
};

template <class T>
inline bool ranks_before(const ScoredRow<T>& a, const ScoredRow<T>& b) noexcept {
    return a.score != b.score ? a.score > b.score : a.row < b.row;
}

template <class T>
class BestRows {
  public:
    explicit BestRows(std::size_t k) : k_(k) {}

    // A later row matters only if its score is above this.
    T floor() const noexcept { return floor_; }

    // Rows come in ascending order, so that of equal scores the first stays.
    void offer(std::span<const T> scores, std::int64_t first_row) {
        for (std::size_t i = 0; i < scores.size(); ++i) offer(scores[i], first_row + static_cast<std::int64_t>(i));
    }

    void offer(T score, std::int64_t row) {
        if (!(score > floor_)) return;
        if (rows_.empty()) rows_.reserve(2 * k_ + kSlack);
        rows_.push_back({score, row});
        if (rows_.size() == 2 * k_ + kSlack) drop_the_rest();
    }

    void merge(const BestRows& other) { rows_.insert(rows_.end(), other.rows_.begin(), other.rows_.end()); }

    // At most k rows, best first.
    std::span<const ScoredRow<T>> finish() {
        drop_the_rest();
        std::sort(rows_.begin(), rows_.end(), ranks_before<T>);
        return rows_;
    }

  private:
    static constexpr std::size_t kSlack = 64;

    void drop_the_rest() {
        if (rows_.size() <= k_) return;
        const auto last = rows_.begin() + static_cast<std::ptrdiff_t>(k_ - 1);
        std::nth_element(rows_.begin(), last, rows_.end(), ranks_before<T>);
        floor_ = last->score;
        rows_.resize(k_);
    }

    std::size_t k_;
    T floor_ = -std::numeric_limits<T>::infinity();
    std::vector<ScoredRow<T>> rows_;
};

}  // namespace hsca
