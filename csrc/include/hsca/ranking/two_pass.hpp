// two_pass.hpp -- the two-pass discovery scores of section 7.
//
//   omega = alpha_r e^(-lambda_r age) + alpha_f f + alpha_a a     f = ln(1 + acc) / ln(2 + max acc)          (7.3)
//   S     = omega max(sim, 0) (1 + kappa M) / (1 + kappa)         0 <= S <= omega <= 1, rounding included    (7.5)
//
// At cold start (max acc = 0) every f is 0. An access count above max_access counts as max_access.
#pragma once

#include <cstddef>

#include "hsca/ranking/candidate_blocks.hpp"

namespace hsca {

// Columns of n elements each.
template <class T>
struct AuthorityColumns {
    const T* age;
    const T* access;
    const T* authored;
    std::size_t n;
};

template <class T>
struct SecondPassColumns {
    const T* similarity;
    const T* authority;
    const T* coverage;
    std::size_t n;
};

// T is float or double; `out` must not overlap an input. The k best need k of at least 1, or throw
// std::invalid_argument.
template <class T>
Outcome authority_weights(const AuthorityColumns<T>& columns, const AuthorityTerms<double>& terms,
                          const Workers& workers, T* out);

template <class T>
Outcome second_pass_scores(const SecondPassColumns<T>& columns, double kappa, const Workers& workers, T* out);

template <class T>
BestCandidates<T> second_pass_top_k(const SecondPassColumns<T>& columns, double kappa, std::size_t k,
                                    const Workers& workers);

// The k rows with the highest similarities: pass 1 (7.4) before its threshold.
template <class T>
BestCandidates<T> top_similarities(const T* similarity, std::size_t n, std::size_t k, const Workers& workers);

}  // namespace hsca
