#include "hsca/ranking/two_pass.hpp"

#include <cmath>

namespace hsca {

namespace {

template <class T>
auto second_pass_over(const SecondPassColumns<T>& c, double kappa, Isa isa) {
    const auto share = static_cast<T>(kappa / (1.0 + kappa));
    return [&c, share, kernel = candidate_kernels<T>(isa).second_pass](std::size_t begin, std::size_t count, T* out) {
        return kernel(c.similarity + begin, c.authority + begin, c.coverage + begin, count, share, out);
    };
}

}  // namespace

template <class T>
Outcome authority_weights(const AuthorityColumns<T>& c, const AuthorityTerms<double>& terms, const Workers& workers,
                          T* out) {
    const auto kernel = candidate_kernels<T>(workers.isa).authority;
    return score_candidates(c.n, workers, out, [&](std::size_t begin, std::size_t count, T* to) {
        return kernel(c.age + begin, c.access + begin, c.authored + begin, count, terms, to);
    });
}

template <class T>
Outcome second_pass_scores(const SecondPassColumns<T>& columns, double kappa, const Workers& workers, T* out) {
    return score_candidates(columns.n, workers, out, second_pass_over(columns, kappa, workers.isa));
}

template <class T>
BestCandidates<T> second_pass_top_k(const SecondPassColumns<T>& columns, double kappa, std::size_t k,
                                    const Workers& workers) {
    return best_candidates<T>(columns.n, k, workers, second_pass_over(columns, kappa, workers.isa));
}

template <class T>
BestCandidates<T> top_similarities(const T* similarity, std::size_t n, std::size_t k, const Workers& workers) {
    return best_candidates<T>(n, k, workers, [=](std::size_t begin, std::size_t count, T* out) {
        bool bad = false;
        for (std::size_t i = 0; i < count; ++i) {
            out[i] = similarity[begin + i];
            bad |= !std::isfinite(out[i]);
        }
        return bad;
    });
}

#define HSCA_TWO_PASS(T)                                                                                               \
    template Outcome authority_weights(const AuthorityColumns<T>&, const AuthorityTerms<double>&, const Workers&, T*); \
    template Outcome second_pass_scores(const SecondPassColumns<T>&, double, const Workers&, T*);                      \
    template BestCandidates<T> second_pass_top_k(const SecondPassColumns<T>&, double, std::size_t, const Workers&);    \
    template BestCandidates<T> top_similarities(const T*, std::size_t, std::size_t, const Workers&);
HSCA_TWO_PASS(float)
HSCA_TWO_PASS(double)

}  // namespace hsca
