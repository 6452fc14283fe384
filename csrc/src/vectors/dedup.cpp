#include "hsca/vectors/dedup.hpp"

#include <algorithm>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "hsca/vectors/codes.hpp"
#include "hsca/vectors/prefix_norm.hpp"
#include "hsca/vectors/top_k.hpp"

namespace hsca {

namespace {

// Roots are the lowest rows of their sets.
class DisjointSets {
  public:
    explicit DisjointSets(std::size_t n) : parent_(n) { std::iota(parent_.begin(), parent_.end(), 0u); }

    std::uint32_t root(std::uint32_t row) noexcept {
        while (parent_[row] != row) row = parent_[row] = parent_[parent_[row]];
        return row;
    }
    void join(std::uint32_t a, std::uint32_t b) noexcept {
        a = root(a);
        b = root(b);
        parent_[std::max(a, b)] = std::min(a, b);
    }

  private:
    std::vector<std::uint32_t> parent_;
};

struct Encoded {
    explicit Encoded(const TierShape& shape_, std::size_t n)
        : shape(shape_),
          inverse(n),
          scale(n),
          error(n),
          lead_residual(n),
          residual(n * std::max<std::size_t>(1, shape.segments - shape.lead)),
          lead((n + kGroupRows - 1) / kGroupRows * shape.lead * kGroupBytes),
          tail(n * shape.tail_bytes()) {}
    TierColumns columns() {
        return {inverse.data(),  scale.data(), error.data(), lead_residual.data(),
                residual.data(), lead.data(),  tail.data()};
    }
    TierShape shape;
    std::vector<float> inverse, scale, error, lead_residual, residual;
    std::vector<std::uint8_t> lead, tail;
};

// Pairs of a few rows with a block of rows at or behind them.
class PairSearch {
  public:
    PairSearch(const Rows& rows, const Encoded& encoded, double threshold, Isa isa)
        : sets(rows.n),
          rows_(rows),
          encoded_(encoded),
          kernels_(vector_kernels(isa)),
          threshold_(threshold),
          codes_(kFew * encoded.shape.lead * kSegment),
          sums_(kFew * kBlock),
          found_(kBlock + 16),
          segment_(kSegment) {}

    static constexpr std::size_t kBlock = 1024, kFew = 4;  // rows of a block, rows compared with it at a time

    // Rows of [first, first + kBlock) with every row before them.
    bool run(std::size_t first, Stop& stop) {
        const TierShape& shape = encoded_.shape;
        const std::size_t n = std::min(kBlock, rows_.n - first), n_groups = (n + kGroupRows - 1) / kGroupRows;
        const std::uint8_t* block = encoded_.lead.data() + first / kGroupRows * shape.lead * kGroupBytes;
        for (std::size_t q = 0; q < first + n; q += kFew) {
            if (q % 256 == 0 && stop.requested()) return false;
            const std::size_t few = std::min(kFew, first + n - q);
            for (std::size_t i = 0; i < few; ++i) {
                leading_codes(shape, encoded_.lead.data(), q + i, codes_.data() + i * shape.lead * kSegment);
            }
            kernels_.code_groups(codes_.data(), few, block, n_groups, shape.lead, kBlock, sums_.data());
            for (std::size_t i = 0; i < few; ++i) {
                join_near(static_cast<std::uint32_t>(q + i), first, n, sums_.data() + i * kBlock);
            }
        }
        return true;
    }

    DisjointSets sets;

  private:
    BoundTerms terms(std::size_t row, float residual) const noexcept {
        const float error = encoded_.error[row];
        const double rest = static_cast<double>(error) + rounding_slack(encoded_.shape.width);
        return {encoded_.scale[row], (1.0f + error) * 1.000001f, residual, static_cast<float>(rest * 1.000001)};
    }

    float residual(std::size_t row, std::size_t m) const noexcept {  // after m segments of the tail
        const std::size_t later = encoded_.shape.segments - encoded_.shape.lead;
        if (m == later) return 0.0f;
        return m == 0 ? encoded_.lead_residual[row] : encoded_.residual[row * (later - 1) + m - 1];
    }

    void join_near(std::uint32_t row, std::size_t first, std::size_t n, const std::int32_t* sums) {
        const float least = static_cast<float>(threshold_ - 2.0 * kCosineNoise);
        const std::size_t from = row >= first ? row - first + 1 : 0;
        const std::size_t count = kernels_.select_bounds(
            sums + from, encoded_.scale.data() + first + from, encoded_.error.data() + first + from,
            encoded_.lead_residual.data() + first + from, n - from, terms(row, residual(row, 0)), least, found_.data());
        if (count == 0 || encoded_.inverse[row] == 0.0f) return;
        picked_.clear();
        partial_.clear();
        const std::uint32_t root = sets.root(row);
        for (std::size_t i = 0; i < count; ++i) {
            const std::size_t other = first + from + found_[i];
            if (sets.root(static_cast<std::uint32_t>(other)) == root) continue;
            picked_.push_back(static_cast<std::uint32_t>(other));
            partial_.push_back(sums[from + found_[i]]);
        }
        const std::size_t later = encoded_.shape.segments - encoded_.shape.lead;
        for (std::size_t m = 1; m <= later && !picked_.empty(); ++m) compare_segment(row, m, least);
        if (picked_.empty()) return;
        products_.resize(picked_.size());
        kernels_.dot_picked(rows_.row(row), rows_.data, rows_.stride, picked_.data(), picked_.size(), rows_.dims,
                            products_.data());
        for (std::size_t i = 0; i < picked_.size(); ++i) {
            const double inverse = static_cast<double>(encoded_.inverse[row]) * encoded_.inverse[picked_[i]];
            if (products_[i] * inverse >= threshold_ - kCosineNoise) sets.join(row, picked_[i]);
        }
    }

    void compare_segment(std::size_t row, std::size_t m, float least) {
        const std::size_t bytes = encoded_.shape.tail_bytes();
        const std::uint8_t* own = encoded_.tail.data() + row * bytes + (m - 1) * kSegment;
        for (std::size_t j = 0; j < kSegment; ++j) segment_[j] = static_cast<std::int8_t>(own[j] - kCodeOffset);
        kernels_.code_picked(segment_.data(), encoded_.tail.data() + (m - 1) * kSegment, bytes, picked_.data(),
                             picked_.size(), partial_.data());
        const BoundTerms t = terms(row, residual(row, m));
        std::size_t kept = 0;
        for (std::size_t i = 0; i < picked_.size(); ++i) {
            const std::size_t other = picked_[i];
            const float bound =
                row_bound(partial_[i], encoded_.scale[other], encoded_.error[other], residual(other, m), t);
            picked_[kept] = picked_[i];
            partial_[kept] = partial_[i];
            kept += bound >= least;
        }
        picked_.resize(kept);
        partial_.resize(kept);
    }

    const Rows& rows_;
    const Encoded& encoded_;
    const VectorKernels& kernels_;
    double threshold_;
    std::vector<std::int8_t> codes_;
    std::vector<std::int32_t> sums_, partial_;
    std::vector<std::uint32_t> found_, picked_;
    std::vector<float> products_;
    std::vector<std::int8_t> segment_;
};

}  // namespace

bool connected_components(const Rows& rows, double threshold, std::size_t threads, Isa isa, Stop::Poll poll,
                          std::span<std::uint32_t> component) {
    if (component.size() != rows.n || rows.n >= kNoRow)
        throw std::invalid_argument("connected_components: sizes do not match");
    if (rows.dims == 0) std::iota(component.begin(), component.end(), 0u);  // like no other, as rows of zeros
    if (rows.n == 0 || rows.dims == 0) return true;
    if (rows.dims > kMaxWidth) throw std::invalid_argument("connected_components: vectors too wide");
    std::vector<float> inverse(rows.n);
    prefix_inverse(rows, rows.dims, 0.0, isa, inverse);
    if (are_extreme(inverse)) {
        const std::vector<float> unit = unit_rows(rows, isa);
        return connected_components({unit.data(), rows.n, rows.dims, rows.dims}, threshold, threads, isa, poll,
                                    component);
    }
    // A pair's unseen part adds at most what its rows have left: enough of the energy must lead to fall below the
    // threshold.
    const double share = std::clamp(1.1 - threshold, 0.1, 0.95);
    const TierShape shape{rows.dims, leading_segments(rows, rows.dims, share), segment_count(rows.dims)};
    Encoded encoded(shape, rows.n);
    Stop stop(poll);
    if (!encode_tier(rows, 0, rows.n, shape, 0.0, isa, stop, encoded.columns())) return false;

    const std::size_t n_blocks = (rows.n + PairSearch::kBlock - 1) / PairSearch::kBlock;
    std::vector<std::unique_ptr<PairSearch>> searches(std::clamp<std::size_t>(threads, 1, n_blocks));
    const bool finished =
        parallel_for(n_blocks, searches.size(), 1, stop, [&](std::size_t worker, std::size_t begin, std::size_t end) {
            if (!searches[worker]) searches[worker] = std::make_unique<PairSearch>(rows, encoded, threshold, isa);
            for (std::size_t b = begin; b < end; ++b) {
                if (!searches[worker]->run(b * PairSearch::kBlock, stop)) return;
            }
        });
    if (!finished) return false;
    DisjointSets all(rows.n);
    for (const auto& search : searches) {
        if (!search) continue;
        for (std::uint32_t i = 0; i < rows.n; ++i) all.join(i, search->sets.root(i));
    }
    for (std::uint32_t i = 0; i < rows.n; ++i) component[i] = all.root(i);
    return true;
}

}  // namespace hsca
