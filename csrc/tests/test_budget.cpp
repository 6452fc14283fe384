#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "check.hpp"
#include "hsca/ranking/budget.hpp"

using namespace hsca;

namespace {

check::Random random_source{3};

template <class T, class Cost>
std::vector<std::int64_t> naive(const std::vector<T>& scores, const std::vector<Cost>& costs, double budget,
                                FitPolicy policy) {
    std::vector<std::int64_t> order(scores.size()), fitting;
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
        return scores[static_cast<std::size_t>(a)] > scores[static_cast<std::size_t>(b)];
    });
    double used = 0.0;
    for (const std::int64_t row : order) {
        const auto cost = static_cast<double>(costs[static_cast<std::size_t>(row)]);
        if (used + cost <= budget) {
            used += cost;
            fitting.push_back(row);
        } else if (policy == FitPolicy::prefix) {
            break;
        }
    }
    return fitting;
}

template <class T, class Cost>
void compare(std::size_t n, std::size_t n_values, double share) {
    std::vector<T> scores(n);
    std::vector<Cost> costs(n);
    double total = 0.0;
    for (std::size_t i = 0; i < n; ++i) {
        // Small integers: ties are plenty, and both zeros appear.
        scores[i] = static_cast<T>(static_cast<double>(random_source.below(n_values)) - 3.0) * T(i % 2 ? 1 : -1);
        costs[i] = static_cast<Cost>(random_source.below(50));
        total += static_cast<double>(costs[i]);
    }
    for (const FitPolicy policy : {FitPolicy::prefix, FitPolicy::first_fit}) {
        const auto found = fit_budget_scored(scores.data(), costs.data(), n, share * total, policy);
        CHECK(found && *found == naive(scores, costs, share * total, policy));
        const auto ranked = fit_budget(costs.data(), n, share * total, policy);
        CHECK(ranked && *ranked == naive(std::vector<T>(n), costs, share * total, policy));
    }
}

}  // namespace

int main() {
    for (const FitPolicy policy : {FitPolicy::prefix, FitPolicy::first_fit}) {
        // Ten ones that float64 would lose beside 2^53.
        std::vector<std::int64_t> whole(11, 1);
        std::vector<double> real(11, 1.0), scores(11, 0.5);
        whole[0] = std::int64_t(1) << 53;
        real[0] = 0x1p53;
        CHECK(fit_budget(whole.data(), 11, 0x1p53, policy)->size() == 1);
        CHECK(fit_budget(real.data(), 11, 0x1p53, policy)->size() == 1);
        CHECK(fit_budget_scored(scores.data(), whole.data(), 11, 0x1p53 + 4, policy)->size() == 5);
        CHECK(fit_budget_scored(scores.data(), real.data(), 11, 0x1p53 + 4, policy)->size() == 5);
        whole.assign(3, std::int64_t(1) << 62);
        CHECK(fit_budget(whole.data(), 3, 1e300, policy)->size() == 1);
    }

    for (const std::size_t n : {0u, 1u, 2u, 100u, 1023u, 1024u, 1025u, 4096u, 4097u, 30'000u}) {
        for (const std::size_t n_values : {1u, 5u, 1'000'000u}) {
            for (const double share : {0.0, 0.001, 0.1, 0.6, 1.0}) {
                compare<float, std::int32_t>(n, n_values, share);
                compare<double, std::int64_t>(n, n_values, share);
                compare<double, double>(n, n_values, share);
            }
        }
    }
    const double bad_costs[] = {1.0, -1.0}, nan_costs[] = {1.0, std::nan("")}, costs[] = {1.0, 1.0};
    const float scores[] = {0.5f, std::numeric_limits<float>::infinity()}, good[] = {0.5f, 0.1f};
    const std::int32_t negative[] = {1, -1};
    CHECK(!fit_budget(bad_costs, 2, 9.0, FitPolicy::prefix));
    CHECK(!fit_budget(nan_costs, 2, 9.0, FitPolicy::prefix));
    CHECK(!fit_budget(negative, 2, 9.0, FitPolicy::prefix));
    CHECK(!fit_budget_scored(scores, costs, 2, 9.0, FitPolicy::prefix));
    CHECK(!fit_budget_scored(good, bad_costs, 2, 9.0, FitPolicy::prefix));
    return check::result();
}
