// candidate_kernels.hpp -- the formulas over arrays of candidates, one function each, built once for each instruction
// set (candidate_kernels.inl). T is float or double and so is every step: additions, multiplications, divisions and
// comparisons of single elements, never fused, so a result is the same on every machine.
//
// Kernels check nothing but note everything: they return 0 when every input was finite (and every scope known) and
// something else otherwise. Data are clamped to their domains: ages below 0 are 0, the rest goes to [0, 1].
//
// This header is seen by files compiled for other instruction sets: plain structs and pointers only, no std templates
// (an inline function from there could be kept for everybody by the linker).
#pragma once

#include <cstddef>
#include <cstdint>

#include "hsca/isa.hpp"

namespace hsca {

inline constexpr std::size_t kMaxScopes = 256;

inline constexpr std::size_t kContenderRoom = 16;  // a register is written whole

template <class T>
struct HybridTerms {
    T alpha, beta;         // normalised weights of cosine and recency
    T delta;               // quality penalty
    T rate[kMaxScopes];    // lambda_s log2(e) by scope
    T weight[kMaxScopes];  // gamma * S by scope
    std::size_t n_scopes;
};

template <class T>
struct AuthorityTerms {
    T recency_weight, frequency_weight, authored_weight;  // normalised
    T decay;                                              // lambda_r
    T max_access;
};

template <class T>
struct CandidateKernels {
    // R = e^(-decay * age)
    std::int64_t (*recency)(const T* age, std::size_t n, T decay, T* out);

    // (alpha cos + beta e^(-lambda_s age) + gamma S) (1 - delta decay_rate); decay_rate may be null: Q = 1
    std::int64_t (*hybrid)(const T* cosine, const T* age, const std::uint8_t* scope, const T* decay_rate, std::size_t n,
                           const HybridTerms<T>& terms, T* out);

    // Rows whose hybrid score may be above `floor`: those that are above it with R rounded up to 1/2 or 1, and without
    // a penalty. Writes their numbers, ascending, to `rows`, which has room for n + kContenderRoom of them (n < 2^32),
    // and how many there are to `found`.
    std::int64_t (*hybrid_contenders)(const T* cosine, const T* age, const std::uint8_t* scope, const T* decay_rate,
                                      std::size_t n, const HybridTerms<T>& terms, T floor, std::uint32_t* rows,
                                      std::size_t& found);

    // alpha_r e^(-lambda_r age) + alpha_f ln(1 + acc) / ln(2 + max acc) + alpha_a a, in double whatever T is
    std::int64_t (*authority)(const T* age, const T* access, const T* authored, std::size_t n,
                              const AuthorityTerms<double>& terms, T* out);

    // omega s (1 + kappa M) / (1 + kappa) as omega s (1 - share (1 - M)) with share = kappa / (1 + kappa)
    std::int64_t (*second_pass)(const T* similarity, const T* authority, const T* coverage, std::size_t n, T share,
                                T* out);

    std::size_t (*count_above)(const T* scores, std::size_t n, T floor);
};

// Defined for float and double; `isa` must be one that has_isa.
template <class T>
const CandidateKernels<T>& candidate_kernels(Isa isa) noexcept;

}  // namespace hsca
