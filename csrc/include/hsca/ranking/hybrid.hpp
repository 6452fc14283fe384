// hybrid.hpp -- score = (alpha cos + beta R + gamma S) Q, the hybrid rank of section 1, in [0, 1].
//
//   cos  similarity clamped to [0, 1]           R  e^(-lambda_s age), by scope
//   S    scope weight                           Q  1 - delta decay_rate; 1 where no decay rates are given
#pragma once

#include <cstddef>
#include <cstdint>

#include "hsca/ranking/candidate_blocks.hpp"

namespace hsca {

// Columns of n elements each.
template <class T>
struct HybridCandidates {
    const T* cosine;
    const T* age;
    const std::uint8_t* scope;  // row of the tables in HybridTerms
    const T* decay_rate;        // may be null
    std::size_t n;
};

// Makes terms from normalised weights (alpha, beta, gamma) and a decay and weight for each scope. Throws
// std::invalid_argument when there are no scopes, or more than kMaxScopes.
template <class T>
void set_hybrid_terms(const double* weights, double delta, const double* decays, const double* scope_weights,
                      std::size_t n_scopes, HybridTerms<T>& terms);

// T is float or double; `out` must not overlap an input.
template <class T>
Outcome hybrid_scores(const HybridCandidates<T>& candidates, const HybridTerms<T>& terms, const Workers& workers,
                      T* out);

// The k best rows without writing the scores of the others anywhere. Throws std::invalid_argument for k = 0.
template <class T>
BestCandidates<T> hybrid_top_k(const HybridCandidates<T>& candidates, const HybridTerms<T>& terms, std::size_t k,
                               const Workers& workers);

}  // namespace hsca
