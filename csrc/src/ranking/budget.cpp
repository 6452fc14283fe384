#include "hsca/ranking/budget.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <span>
#include <stdexcept>
#include <type_traits>
#include <utility>

namespace hsca {

namespace {

// Takes costs in rank order. Integers are summed exactly; floats with the rounding error of every sum carried along
// (Neumaier), so that many small costs cannot slip under a large one.
template <class Cost>
class Budget {
  public:
    Budget(double budget, FitPolicy policy) : policy_(policy) {
        if constexpr (kWhole) {
            // Costs are whole, so is what they may add up to, and no sum reaches 2^63.
            left_ = budget < 0x1p63 ? static_cast<std::int64_t>(budget) : std::numeric_limits<std::int64_t>::max();
        } else {
            left_ = budget;
        }
    }

    // A cost above this does not fit; some below may not either.
    double remaining() const {
        if constexpr (kWhole) return static_cast<double>(left_);
        return static_cast<double>(left_) - used_ + 0x1p-50 * static_cast<double>(left_);
    }
    bool closed() const { return closed_; }

    bool takes(Cost cost) {
        if constexpr (kWhole) {
            if (cost <= left_) {
                left_ -= cost;
                return true;
            }
        } else {
            const double after = used_ + cost;
            const double error = lost_ + (used_ >= cost ? (used_ - after) + cost : (cost - after) + used_);
            if ((after - left_) + error <= 0.0) {
                used_ = after;
                lost_ = error;
                return true;
            }
        }
        closed_ = policy_ == FitPolicy::prefix;
        return false;
    }

  private:
    static constexpr bool kWhole = std::is_integral_v<Cost>;
    std::conditional_t<kWhole, std::int64_t, double> left_;
    double used_ = 0.0, lost_ = 0.0;
    FitPolicy policy_;
    bool closed_ = false;
};

template <class Cost>
bool valid_costs(std::span<const Cost> costs) {
    bool bad = false;
    for (const Cost cost : costs) {
        if constexpr (std::is_floating_point_v<Cost>) {
            bad |= !(cost >= 0) | !(cost <= std::numeric_limits<Cost>::max());
        } else {
            bad |= cost < 0;
        }
    }
    return !bad;
}

template <class T>
bool all_finite(std::span<const T> values) {
    bool bad = false;
    for (const T x : values) bad |= !(std::fabs(x) <= std::numeric_limits<T>::max());
    return !bad;
}

// Unsigned keys that ascend as scores descend; both zeros have one key.
template <class T>
auto descending_key(T score) {
    using Key = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
    constexpr Key kSign = Key(1) << (8 * sizeof(T) - 1);
    const Key bits = std::bit_cast<Key>(score + T(0));
    return static_cast<Key>(bits & kSign ? bits : ~(bits | kSign));
}

template <class T>
struct KeyedRow {
    decltype(descending_key(T())) key;
    std::uint32_t row;
};

// Stable sort by key: least significant digit first, digits that are the same everywhere left out. `spare` is as long.
// Returns where the result is.
template <class T>
KeyedRow<T>* sort_rows(KeyedRow<T>* rows, KeyedRow<T>* spare, std::size_t n) {
    constexpr std::size_t kDigitBits = 11, kDigits = (8 * sizeof(T) + kDigitBits - 1) / kDigitBits;
    constexpr std::size_t kMask = (std::size_t(1) << kDigitBits) - 1;
    if (n < 1024) {
        std::sort(rows, rows + n, [](const KeyedRow<T>& a, const KeyedRow<T>& b) {
            return a.key != b.key ? a.key < b.key : a.row < b.row;
        });
        return rows;
    }
    std::vector<std::array<std::uint32_t, kMask + 1>> counts(kDigits);
    for (std::size_t i = 0; i < n; ++i) {
        for (std::size_t d = 0; d < kDigits; ++d) ++counts[d][rows[i].key >> d * kDigitBits & kMask];
    }
    for (std::size_t d = 0; d < kDigits; ++d) {
        if (counts[d][rows[0].key >> d * kDigitBits & kMask] == n) continue;
        std::uint32_t place = 0;
        for (std::uint32_t& count : counts[d]) place += std::exchange(count, place);
        for (std::size_t i = 0; i < n; ++i) spare[counts[d][rows[i].key >> d * kDigitBits & kMask]++] = rows[i];
        std::swap(rows, spare);
    }
    return rows;
}

// Where to cut a ranking so that about so many rows are above the cut.
template <class T, class Cost>
class CutFinder {
  public:
    CutFinder(std::span<const T> scores, std::span<const Cost> costs) : n_(scores.size()) {
        const std::size_t stride = std::max<std::size_t>(1, n_ / kSample);
        double cost = 0.0;
        for (std::size_t i = 0; i < n_; i += stride) {
            sample_.push_back(scores[i]);
            cost += static_cast<double>(costs[i]);
        }
        mean_cost_ = cost / static_cast<double>(std::max<std::size_t>(1, sample_.size()));
        std::sort(sample_.begin(), sample_.end(), std::greater<T>());
    }

    // Number of rows that the budget is likely to take, and some more.
    double likely_rows(double budget) const { return mean_cost_ > 0 ? 1.25 * budget / mean_cost_ + 64.0 : HUGE_VAL; }

    // Below every score when most rows are wanted anyway.
    T cut_for(double n_rows, T below) const {
        constexpr T kNoCut = -std::numeric_limits<T>::infinity();
        double place = 4.0 + n_rows * static_cast<double>(sample_.size()) / static_cast<double>(n_);
        if (n_ <= kSample || !(place < 0.5 * static_cast<double>(sample_.size()))) return kNoCut;
        auto at = sample_.begin() + static_cast<std::ptrdiff_t>(place);
        while (at != sample_.end() && !(*at < below)) ++at;
        return at == sample_.end() ? kNoCut : *at;
    }

  private:
    static constexpr std::size_t kSample = 4096;
    std::size_t n_;
    double mean_cost_;
    std::vector<T> sample_;
};

}  // namespace

template <class Cost>
std::optional<std::vector<std::int64_t>> fit_budget(const Cost* costs, std::size_t n, double budget, FitPolicy policy) {
    if (!valid_costs(std::span(costs, n))) return std::nullopt;
    std::vector<std::int64_t> fitting;
    Budget<Cost> left(budget, policy);
    for (std::size_t i = 0; i < n && !left.closed(); ++i) {
        if (left.takes(costs[i])) fitting.push_back(static_cast<std::int64_t>(i));
    }
    return fitting;
}

template <class T, class Cost>
std::optional<std::vector<std::int64_t>> fit_budget_scored(const T* scores, const Cost* costs, std::size_t n,
                                                           double budget, FitPolicy policy) {
    if (n > std::numeric_limits<std::uint32_t>::max()) throw std::invalid_argument("fit_budget: 2^32 rows or more");
    if (!valid_costs(std::span(costs, n)) || !all_finite(std::span(scores, n))) return std::nullopt;
    std::vector<std::int64_t> fitting;
    if (n == 0) return fitting;
    const CutFinder<T, Cost> cuts({scores, n}, {costs, n});
    // One more than n: the loop below writes before it knows whether a row counts.
    const auto rows = std::make_unique_for_overwrite<KeyedRow<T>[]>(n + 1);
    const auto spare = std::make_unique_for_overwrite<KeyedRow<T>[]>(n + 1);
    Budget<Cost> left(budget, policy);
    T above = std::numeric_limits<T>::infinity();
    double wanted = cuts.likely_rows(budget);
    while (!left.closed() && above != -std::numeric_limits<T>::infinity()) {
        const T cut = cuts.cut_for(wanted, above);
        const double room = policy == FitPolicy::first_fit ? left.remaining() : HUGE_VAL;
        std::size_t found = 0;
        for (std::size_t i = 0; i < n; ++i) {
            rows[found] = {descending_key(scores[i]), static_cast<std::uint32_t>(i)};
            found += static_cast<std::size_t>((scores[i] >= cut) & (scores[i] < above) &
                                              (static_cast<double>(costs[i]) <= room));
        }
        const KeyedRow<T>* ranked = sort_rows<T>(rows.get(), spare.get(), found);
        for (std::size_t i = 0; i < found && !left.closed(); ++i) {
            const std::uint32_t row = ranked[i].row;
            if (left.takes(costs[row])) fitting.push_back(row);
        }
        above = cut;
        wanted *= 4.0;
    }
    return fitting;
}

#define HSCA_FIT(Cost)                                                                                           \
    template std::optional<std::vector<std::int64_t>> fit_budget(const Cost*, std::size_t, double, FitPolicy);   \
    template std::optional<std::vector<std::int64_t>> fit_budget_scored(const float*, const Cost*, std::size_t,  \
                                                                        double, FitPolicy);                      \
    template std::optional<std::vector<std::int64_t>> fit_budget_scored(const double*, const Cost*, std::size_t, \
                                                                        double, FitPolicy);
HSCA_FIT(std::int32_t)
HSCA_FIT(std::int64_t)
HSCA_FIT(double)

}  // namespace hsca
