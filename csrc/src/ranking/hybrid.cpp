#include "hsca/ranking/hybrid.hpp"

#include <algorithm>
#include <limits>

namespace hsca {

namespace {

template <class T>
auto kernel_over(const HybridCandidates<T>& c, const HybridTerms<T>& terms, Isa isa) {
    return [&c, &terms, kernel = candidate_kernels<T>(isa).hybrid](std::size_t begin, std::size_t count, T* out) {
        return kernel(c.cosine + begin, c.age + begin, c.scope + begin, c.decay_rate ? c.decay_rate + begin : nullptr,
                      count, terms, out);
    };
}

}  // namespace

template <class T>
void set_hybrid_terms(const double* weights, double delta, const double* decays, const double* scope_weights,
                      std::size_t n_scopes, HybridTerms<T>& terms) {
    if (n_scopes == 0 || n_scopes > kMaxScopes) throw std::invalid_argument("there must be between 1 and 256 scopes");
    constexpr double kMax = std::numeric_limits<T>::max();
    terms = {};
    terms.alpha = static_cast<T>(weights[0]);
    terms.beta = static_cast<T>(weights[1]);
    terms.delta = static_cast<T>(delta);
    for (std::size_t i = 0; i < n_scopes; ++i) {
        terms.rate[i] = static_cast<T>(std::min(decays[i] * 1.44269504088896338700, kMax));  // finite: 0 times it is 0
        terms.weight[i] = static_cast<T>(weights[2] * scope_weights[i]);
    }
    terms.n_scopes = n_scopes;
}

template <class T>
Outcome hybrid_scores(const HybridCandidates<T>& candidates, const HybridTerms<T>& terms, const Workers& workers,
                      T* out) {
    return score_candidates(candidates.n, workers, out, kernel_over(candidates, terms, workers.isa));
}

template <class T>
BestCandidates<T> hybrid_top_k(const HybridCandidates<T>& candidates, const HybridTerms<T>& terms, std::size_t k,
                               const Workers& workers) {
    return best_candidates<T>(candidates.n, k, workers, kernel_over(candidates, terms, workers.isa));
}

#define HSCA_HYBRID(T)                                                                                                 \
    template void set_hybrid_terms(const double*, double, const double*, const double*, std::size_t, HybridTerms<T>&); \
    template Outcome hybrid_scores(const HybridCandidates<T>&, const HybridTerms<T>&, const Workers&, T*);             \
    template BestCandidates<T> hybrid_top_k(const HybridCandidates<T>&, const HybridTerms<T>&, std::size_t,            \
                                            const Workers&);
HSCA_HYBRID(float)
HSCA_HYBRID(double)

}  // namespace hsca
