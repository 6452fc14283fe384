#include "hsca/vectors/mmr.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "hsca/vectors/prefix_norm.hpp"

namespace hsca {

namespace {

struct Candidate {
    double value;  // without the group's term
    std::uint32_t row;
    std::uint32_t seen;  // picks that `value` knows of

    bool operator<(const Candidate& other) const noexcept {
        return value < other.value || (value == other.value && row > other.row);
    }
};

class Picker {
  public:
    Picker(const Rows& rows, std::vector<float> inverse, std::span<const double> relevance,
           std::span<const std::uint32_t> groups, std::size_t n_groups, const MmrConfig& config, Isa isa,
           std::size_t n_picks)
        : rows_(rows),
          relevance_(relevance),
          config_(config),
          kernels_(vector_kernels(isa)),
          inverse_(std::move(inverse)),
          similarity_(rows.n),
          heaps_(n_groups),
          picked_in_(n_groups),
          picked_rows_(n_picks * rows.dims),
          products_(std::max(n_picks, kBlock)) {
        for (std::size_t i = 0; i < rows.n; ++i) {
            heaps_[groups.empty() ? 0 : groups[i]].push_back(
                {config.lambda * relevance[i], static_cast<std::uint32_t>(i), 0});
        }
        for (auto& heap : heaps_) std::make_heap(heap.begin(), heap.end());
    }

    bool run(Stop& stop, std::span<std::int64_t> picks) {
        for (std::size_t p = 0; p < picks.size(); ++p) {
            if (stop.requested()) return false;
            const auto [group, row] = best(p);
            take(heaps_[group], row);
            picks[p] = row;
            ++picked_in_[group];
            std::copy_n(rows_.row(row), rows_.dims, picked_rows_.begin() + static_cast<std::ptrdiff_t>(p * rows_.dims));
            picked_inverse_.push_back(inverse_[row]);
            if (p == 0) compare_all();
        }
        return true;
    }

  private:
    static constexpr std::size_t kBlock = 256;

    double value(std::size_t row) const noexcept {
        return config_.lambda * relevance_[row] - (1.0 - config_.lambda) * similarity_[row];
    }

    double cosine(float product, std::size_t row, std::size_t pick) const noexcept {
        return static_cast<double>(product) * (static_cast<double>(inverse_[row]) * picked_inverse_[pick]);
    }

    // The first pick may raise a value (a negative similarity): everyone is brought up to date.
    void compare_all() {
        for (std::size_t first = 0; first < rows_.n; first += kBlock) {
            const std::size_t n = std::min(kBlock, rows_.n - first);
            kernels_.dot_rows(picked_rows_.data(), rows_.row(first), rows_.stride, n, rows_.dims, products_.data());
            for (std::size_t i = 0; i < n; ++i) similarity_[first + i] = cosine(products_[i], first + i, 0);
        }
        for (auto& heap : heaps_) {
            for (Candidate& candidate : heap) candidate = {value(candidate.row), candidate.row, 1};
            std::make_heap(heap.begin(), heap.end());
        }
    }

    void refresh(Candidate& candidate, std::size_t n_picked) {
        const std::size_t row = candidate.row, seen = candidate.seen;
        kernels_.dot_rows(rows_.row(row), picked_rows_.data() + seen * rows_.dims, rows_.dims, n_picked - seen,
                          rows_.dims, products_.data());
        for (std::size_t p = seen; p < n_picked; ++p) {
            similarity_[row] = std::max(similarity_[row], cosine(products_[p - seen], row, p));
        }
        candidate.value = value(row);
        candidate.seen = static_cast<std::uint32_t>(n_picked);
    }

    double penalty(std::size_t group, std::size_t n_picked) const noexcept {
        if (n_picked == 0) return 0.0;
        return config_.group_weight * (static_cast<double>(picked_in_[group]) / static_cast<double>(n_picked));
    }

    struct Best {
        std::size_t group;
        std::uint32_t row;
    };

    // The best candidate of all, brought up to date. A heap has its best first, but a great penalty rounds values that
    // differ to one: those are set aside and looked at for the lowest row.
    Best best(std::size_t n_picked) {
        Best found{heaps_.size(), 0};
        double best_value = 0.0;
        for (std::size_t g = 0; g < heaps_.size(); ++g) {
            auto& heap = heaps_[g];
            const double minus = penalty(g, n_picked);
            aside_.clear();
            while (!heap.empty()) {
                const Candidate& top = heap.front();
                const double value = top.value - minus;
                const bool is_tie = found.group != heaps_.size() && value == best_value;
                if (found.group != heaps_.size() &&
                    (value < best_value || (is_tie && minus == 0.0 && top.row > found.row)))
                    break;
                if (top.seen != n_picked) {
                    refresh_top(heap, n_picked);
                    continue;
                }
                if (!is_tie || top.row < found.row) {
                    best_value = value;
                    found = {g, top.row};
                }
                if (runner_up(heap) - minus < best_value) break;
                aside_.push_back(top);
                std::pop_heap(heap.begin(), heap.end());
                heap.pop_back();
            }
            for (const Candidate& candidate : aside_) {
                heap.push_back(candidate);
                std::push_heap(heap.begin(), heap.end());
            }
        }
        return found;
    }

    static double runner_up(const std::vector<Candidate>& heap) noexcept {
        double value = -std::numeric_limits<double>::infinity();
        for (std::size_t i = 1; i < std::min<std::size_t>(3, heap.size()); ++i) value = std::max(value, heap[i].value);
        return value;
    }

    static void take(std::vector<Candidate>& heap, std::uint32_t row) {
        if (heap.front().row == row) {
            std::pop_heap(heap.begin(), heap.end());
            heap.pop_back();
            return;
        }
        std::erase_if(heap, [row](const Candidate& candidate) { return candidate.row == row; });
        std::make_heap(heap.begin(), heap.end());
    }

    void refresh_top(std::vector<Candidate>& heap, std::size_t n_picked) {
        Candidate top = heap.front();
        refresh(top, n_picked);
        // Down from the root: cheaper than a pop and a push.
        std::size_t hole = 0;
        for (std::size_t child = 1; child < heap.size(); child = 2 * hole + 1) {
            if (child + 1 < heap.size() && heap[child] < heap[child + 1]) ++child;
            if (!(top < heap[child])) break;
            heap[hole] = heap[child];
            hole = child;
        }
        heap[hole] = top;
    }

    const Rows& rows_;
    std::span<const double> relevance_;
    const MmrConfig& config_;
    const VectorKernels& kernels_;
    std::vector<float> inverse_;
    std::vector<double> similarity_;
    std::vector<std::vector<Candidate>> heaps_;
    std::vector<Candidate> aside_;
    std::vector<std::size_t> picked_in_;
    std::vector<float> picked_rows_, picked_inverse_, products_;
};

}  // namespace

bool mmr(const Rows& rows, std::span<const double> relevance, std::span<const std::uint32_t> groups,
         std::size_t n_groups, const MmrConfig& config, Isa isa, Stop::Poll poll, std::span<std::int64_t> picks) {
    if (relevance.size() != rows.n || (!groups.empty() && groups.size() != rows.n) || picks.size() > rows.n) {
        throw std::invalid_argument("mmr: sizes do not match");
    }
    for (const std::uint32_t group : groups) {
        if (group >= n_groups) throw std::out_of_range("mmr: no such group");
    }
    if (picks.empty()) return true;
    std::vector<float> inverse(rows.n);
    prefix_inverse(rows, rows.dims, 0.0, isa, inverse);
    if (are_extreme(inverse)) {
        const std::vector<float> unit = unit_rows(rows, isa);
        return mmr({unit.data(), rows.n, rows.dims, rows.dims}, relevance, groups, n_groups, config, isa, poll, picks);
    }
    Stop stop(poll);
    return Picker(rows, std::move(inverse), relevance, groups, groups.empty() ? 1 : n_groups, config, isa, picks.size())
        .run(stop, picks);
}

}  // namespace hsca
