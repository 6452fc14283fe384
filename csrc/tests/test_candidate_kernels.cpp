#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "check.hpp"
#include "hsca/ranking/decay.hpp"
#include "hsca/ranking/hybrid.hpp"
#include "hsca/ranking/two_pass.hpp"

using namespace hsca;

namespace {

check::Random random_source{11};

template <class T>
T unit() {
    return static_cast<T>(static_cast<double>(random_source() >> 11) * 0x1p-53);
}

template <class T>
std::vector<T> column(std::size_t n, double low, double high) {
    std::vector<T> values(n);
    for (T& x : values) x = static_cast<T>(low + (high - low) * unit<double>());
    return values;
}

std::vector<Isa> levels() {
    std::vector<Isa> found;
    for (const Isa isa : {Isa::baseline, Isa::avx2, Isa::avx512}) {
        if (has_isa(isa)) found.push_back(isa);
    }
    return found;
}

// Every instruction set, thread count and kind of tail gives the bits of the baseline.
template <class T, class Run>
void same_everywhere(std::size_t n, const Run& run) {
    std::vector<T> expected(n), found(n);
    CHECK(run(Workers{1, nullptr, Isa::baseline}, expected.data()) == Outcome::done);
    for (const Isa isa : levels()) {
        for (const std::size_t threads : {1u, 3u}) {
            CHECK(run(Workers{threads, nullptr, isa}, found.data()) == Outcome::done);
            CHECK(n == 0 || std::memcmp(found.data(), expected.data(), n * sizeof(T)) == 0);
        }
    }
}

template <class T>
void exponentials(double tolerance) {
    const auto ages = column<T>(100'000, -10, 60);
    std::vector<T> found(ages.size());
    CHECK(recency(ages.data(), ages.size(), T(1), Workers{}, found.data()) == Outcome::done);
    for (std::size_t i = 0; i < ages.size(); ++i) {
        const double x = std::max(0.0, static_cast<double>(ages[i]));
        // The exponent is rounded before the power is taken: its relative error is the power's times the exponent.
        CHECK(std::fabs(static_cast<double>(found[i]) / std::exp(-x) - 1.0) <= tolerance * (1.0 + x));
    }
    const T special[] = {T(0), -T(0), T(-5), T(1e30)};
    T out[4];
    CHECK(recency(special, 4, T(1), Workers{}, out) == Outcome::done);
    CHECK_EQ(out[0], T(1));
    CHECK_EQ(out[1], T(1));
    CHECK_EQ(out[2], T(1));
    CHECK(out[3] > T(0));
}

template <class T>
void all_kernels() {
    const double weights[] = {0.7, 0.2, 0.1},
                 decays[] = {1e-4, 1e-5, 2e-6, 0, 1, 2, 1e-6, 3e-7, 1e-7, 0, 0, 0, 0, 0, 0, 0, 1e-7},
                 scopes[] = {1.0, 0.6, 0.3, 0, 1, 0.5, 0.2, 0.7, 0.9, 0, 0, 0, 0, 0, 0, 1, 0.8};
    for (const std::size_t n : {0u, 1u, 2u, 15u, 16u, 17u, 255u, 256u, 257u, 40'000u}) {
        const auto a = column<T>(n, -0.5, 1.5), b = column<T>(n, -1e5, 1e7), c = column<T>(n, -0.5, 1.5);
        for (const std::size_t n_scopes : {1u, 3u, 4u, 6u, 9u, 17u}) {
            std::vector<std::uint8_t> scope(n);
            for (auto& s : scope) s = static_cast<std::uint8_t>(random_source.below(n_scopes));
            HybridTerms<T> terms;
            set_hybrid_terms(weights, 0.5, decays, scopes, n_scopes, terms);
            for (const T* rates : {c.data(), static_cast<const T*>(nullptr)}) {
                const HybridCandidates<T> candidates{a.data(), b.data(), scope.data(), rates, n};
                same_everywhere<T>(n,
                                   [&](const Workers& w, T* out) { return hybrid_scores(candidates, terms, w, out); });
                std::vector<T> scores(n);
                hybrid_scores(candidates, terms, Workers{}, scores.data());
                std::vector<ScoredRow<T>> ranked;
                for (std::size_t i = 0; i < n; ++i) ranked.push_back({scores[i], static_cast<std::int64_t>(i)});
                std::sort(ranked.begin(), ranked.end(), ranks_before<T>);
                for (const std::size_t k : {1u, 10u, 5000u}) {
                    for (const Isa isa : levels()) {
                        const auto best = hybrid_top_k(candidates, terms, k, Workers{2, nullptr, isa});
                        CHECK_EQ(best.rows.size(), std::min(k, n));
                        for (std::size_t i = 0; i < best.rows.size(); ++i) {
                            CHECK_EQ(best.rows[i].row, ranked[i].row);
                            CHECK_EQ(best.rows[i].score, ranked[i].score);
                        }
                    }
                }
            }
        }
        const AuthorityTerms<double> authority{0.5, 0.2, 0.3, 1e-5, 1e6};
        const AuthorityColumns<T> columns{b.data(), b.data(), c.data(), n};
        same_everywhere<T>(n, [&](const Workers& w, T* out) { return authority_weights(columns, authority, w, out); });
        const SecondPassColumns<T> pass{a.data(), c.data(), a.data(), n};
        same_everywhere<T>(n, [&](const Workers& w, T* out) { return second_pass_scores(pass, 0.3, w, out); });
    }
}

// One bad element anywhere is noticed at every level.
template <class T>
void refusals() {
    const double weights[] = {1, 0, 0}, decays[] = {1, 1}, scopes[] = {1, 1};
    HybridTerms<T> terms;
    set_hybrid_terms(weights, 0.5, decays, scopes, 2, terms);
    constexpr std::size_t n = 300;
    for (const std::size_t at : {0u, 15u, 100u, 299u}) {
        for (const T bad : {std::numeric_limits<T>::infinity(), -std::numeric_limits<T>::infinity(),
                            std::numeric_limits<T>::quiet_NaN()}) {
            for (int which = 0; which < 4; ++which) {
                std::vector<T> columns[3] = {column<T>(n, 0, 1), column<T>(n, 0, 1), column<T>(n, 0, 1)};
                std::vector<std::uint8_t> scope(n, 1);
                if (which < 3) {
                    columns[which][at] = bad;
                } else {
                    scope[at] = 2;
                }
                std::vector<T> out(n);
                for (const Isa isa : levels()) {
                    const Workers workers{1, nullptr, isa};
                    const HybridCandidates<T> c{columns[0].data(), columns[1].data(), scope.data(), columns[2].data(),
                                                n};
                    CHECK(hybrid_scores(c, terms, workers, out.data()) == Outcome::refused);
                    CHECK(hybrid_top_k(c, terms, 5, workers).outcome == Outcome::refused);
                    const SecondPassColumns<T> s{columns[0].data(), columns[1].data(), columns[2].data(), n};
                    CHECK((second_pass_scores(s, 1.0, workers, out.data()) == Outcome::refused) == (which < 3));
                    if (which == 0) CHECK(recency(columns[0].data(), n, T(1), workers, out.data()) == Outcome::refused);
                }
            }
        }
    }
    CHECK_THROWS(set_hybrid_terms(weights, 0.5, decays, scopes, 0, terms), std::invalid_argument);
    CHECK_THROWS(set_hybrid_terms(weights, 0.5, decays, scopes, 257, terms), std::invalid_argument);
    CHECK_THROWS(top_similarities<T>(nullptr, 0, 0, Workers{}), std::invalid_argument);
}

}  // namespace

int main() {
    exponentials<float>(2.5e-7);
    exponentials<double>(4e-16);
    all_kernels<float>();
    all_kernels<double>();
    refusals<float>();
    refusals<double>();
    return check::result();
}
