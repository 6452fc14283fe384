// candidate_kernels.inl -- the body of candidate_kernels.hpp, included by one file for each instruction set with
// HSCA_ISA_TABLE naming the table that it defines. Loops are branch-free so that the compiler turns them into vectors;
// everything has internal linkage.

#include <cstring>

#include "hsca/ranking/candidate_kernels.hpp"

// Outputs overlap no input, which lets loops become vectors without a check for it.
#if defined(_MSC_VER)
#define HSCA_RESTRICT __restrict
#else
#define HSCA_RESTRICT __restrict__
#endif

namespace hsca {

namespace {

template <class T>
struct Real;

template <>
struct Real<float> {
    using Bits = std::int32_t;
    static constexpr int kMantissaBits = 23;
    static constexpr float kRound = 12582912.0f;  // 1.5 * 2^23: adding it rounds to an integer
    static constexpr float kMaxExponent = 64.0f;
    static constexpr float kLn2High = 0.693359375f, kLn2Low = -2.12194440e-4f;
    // (e^r - 1 - r) / r^2 on |r| <= 0.35, highest power first: Chebyshev interpolation, off by 1e-8 in e^r.
    static constexpr float kSeries[] = {1.3926926614e-3f, 8.36377387441e-3f, 4.16665501103e-2f, 0.166665733819f, 0.5f};
};

template <>
struct Real<double> {
    using Bits = std::int64_t;
    static constexpr int kMantissaBits = 52;
    static constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
    static constexpr double kMaxExponent = 600.0;
    static constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
    static constexpr double kSeries[] = {2.5101346928350340198e-8, 2.76213386691429238e-7,   2.7557266418612303703e-6,
                                         2.4801518641395993583e-5, 1.9841269864380513295e-4, 1.3888888918939167785e-3,
                                         8.3333333333297934996e-3, 4.1666666666620638584e-2, 0.16666666666666667534,
                                         0.5000000000000001128};  // off by 2e-17
};

template <class T>
using Bits = typename Real<T>::Bits;

template <class T>
inline Bits<T> bits_of(T x) {
    Bits<T> bits;
    std::memcpy(&bits, &x, sizeof x);
    return bits;
}

template <class T>
inline T from_bits(Bits<T> bits) {
    T x;
    std::memcpy(&x, &bits, sizeof x);
    return x;
}

// 0 for a finite number, something else for an infinity or a NaN.
template <class T>
inline Bits<T> not_finite(T x) {
    return bits_of<T>(x - x);
}

// The bits of numbers that are not negative are ordered as the numbers are, and integers have a minimum everywhere.
template <class T>
inline T clamp_age(T x) {
    const Bits<T> bits = bits_of<T>(x);
    return from_bits<T>(bits & ~(bits >> (8 * sizeof(T) - 1)));
}

template <class T>
inline T at_most(T x, T bound) {
    const Bits<T> bits = bits_of<T>(x), most = bits_of<T>(bound);
    return from_bits<T>(bits < most ? bits : most);
}

template <class T>
inline T clamp_unit(T x) {
    return at_most(clamp_age(x), T(1));
}

// e^-x for x >= 0: -x = k ln 2 + r with |r| < 0.35, the series of e^r, and k added to the exponent. Beyond
// kMaxExponent it stays at the smallest value: R is in (0, 1], as the document has it. Within 2 units in the last
// place.
template <class T>
inline T exp_negative(T x) {
    using R = Real<T>;
    constexpr T kLog2E = T(1.44269504088896338700);
    x = at_most(x, R::kMaxExponent);
    const T rounded = R::kRound - x * kLog2E;
    const T k = rounded - R::kRound;
    const T r = (-x - k * R::kLn2High) - k * R::kLn2Low;
    T series = R::kSeries[0];
    for (std::size_t i = 1; i < sizeof R::kSeries / sizeof(T); ++i) series = series * r + R::kSeries[i];
    series = (series * r + T(1)) * r + T(1);
    // k is in the lowest bits of `rounded`; the shift leaves nothing of the rest.
    return from_bits<T>(bits_of<T>(series) + (bits_of<T>(rounded) << R::kMantissaBits));
}

// ln x for normal x >= 1: x = 2^k m with m in [sqrt(1/2), sqrt(2)), and the series of 2 atanh((m-1)/(m+1)).
inline double log_from_one(double x) {
    constexpr std::int64_t kRootHalf = 0x3FE6A09E667F3BCDll;  // sqrt(1/2)
    constexpr double kMagic = 0x1p52;
    const std::int64_t shifted = bits_of<double>(x) - kRootHalf;
    const std::int64_t k = shifted >> 52;
    const double m = from_bits<double>(bits_of<double>(x) - (k << 52));
    // k >= 0 as a double without a conversion, which some instruction sets lack.
    const double exponent = from_bits<double>(k | bits_of<double>(kMagic)) - kMagic;
    const double s = (m - 1.0) / (m + 1.0), s2 = s * s;
    double series = 1.0 / 23.0;
    for (int odd = 21; odd >= 1; odd -= 2) series = series * s2 + 1.0 / odd;
    return exponent * Real<double>::kLn2High + (2.0 * s * series + exponent * Real<double>::kLn2Low);
}

template <class T>
std::int64_t recency(const T* HSCA_RESTRICT age, std::size_t n, T decay, T* HSCA_RESTRICT out) {
    Bits<T> bad = 0;
    for (std::size_t i = 0; i < n; ++i) {
        bad |= not_finite(age[i]);
        out[i] = exp_negative(decay * clamp_age(age[i]));
    }
    return bad;
}

// A value for each scope. A handful is picked with comparisons, which every instruction set has as vectors; more are
// looked up.
template <bool kFew, class T>
struct ByScope {
    T first, second, third, fourth;
    const T* table;
    explicit ByScope(const T* values)
        : first(values[0]), second(values[1]), third(values[2]), fourth(values[3]), table(values) {}
    T operator[](Bits<T> scope) const {
        if constexpr (kFew) {
            const T even = scope & 2 ? third : first, odd = scope & 2 ? fourth : second;
            return scope & 1 ? odd : even;
        } else {
            return table[scope];
        }
    }
};

template <bool kFew, bool kQuality, class T>
std::int64_t hybrid_loop(const T* HSCA_RESTRICT cosine, const T* HSCA_RESTRICT age,
                         const std::uint8_t* HSCA_RESTRICT scope, const T* HSCA_RESTRICT decay_rate, std::size_t n,
                         const HybridTerms<T>& terms, T* HSCA_RESTRICT out) {
    const T alpha = terms.alpha, beta = terms.beta, delta = terms.delta;
    const ByScope<kFew, T> decay(terms.decay), weight(terms.weight);
    const Bits<T> last_scope = static_cast<Bits<T>>(terms.n_scopes) - 1;
    Bits<T> bad = 0;
    constexpr std::size_t kBlock = 256;
    Bits<T> scopes[kBlock];  // widened first, so that the loop below deals in elements of one size
    for (std::size_t begin = 0; begin < n; begin += kBlock) {
        const std::size_t end = n - begin < kBlock ? n : begin + kBlock;
        for (std::size_t i = begin; i < end; ++i) scopes[i - begin] = scope[i];
        for (std::size_t i = begin; i < end; ++i) {
            const Bits<T> s = scopes[i - begin];
            bad |= not_finite(cosine[i]) | not_finite(age[i]) | (last_scope - s) >> (8 * sizeof(T) - 1);
            const T r = exp_negative(decay[s] * clamp_age(age[i]));
            T score = alpha * clamp_unit(cosine[i]) + beta * r + weight[s];
            if constexpr (kQuality) {
                bad |= not_finite(decay_rate[i]);
                score *= T(1) - delta * clamp_unit(decay_rate[i]);
            }
            out[i] = at_most(score, T(1));
        }
    }
    return bad;
}

template <class T>
std::int64_t hybrid(const T* cosine, const T* age, const std::uint8_t* scope, const T* decay_rate, std::size_t n,
                    const HybridTerms<T>& terms, T* out) {
    const bool few = terms.n_scopes <= 4;
    const auto loop = few ? (decay_rate ? hybrid_loop<true, true, T> : hybrid_loop<true, false, T>)
                          : (decay_rate ? hybrid_loop<false, true, T> : hybrid_loop<false, false, T>);
    return loop(cosine, age, scope, decay_rate, n, terms, out);
}

template <class T>
std::int64_t authority(const T* HSCA_RESTRICT age, const T* HSCA_RESTRICT access, const T* HSCA_RESTRICT authored,
                       std::size_t n, const AuthorityTerms<double>& given, T* HSCA_RESTRICT out) {
    const AuthorityTerms<double> terms = given;
    const double most = log_from_one(2.0 + terms.max_access);
    std::int64_t bad = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double t = static_cast<double>(age[i]), count = static_cast<double>(access[i]),
                     a = static_cast<double>(authored[i]);
        bad |= not_finite(t) | not_finite(count) | not_finite(a);
        const double f = log_from_one(1.0 + at_most(clamp_age(count), terms.max_access)) / most;
        const double omega = terms.recency_weight * exp_negative(terms.decay * clamp_age(t)) +
                             terms.frequency_weight * f + terms.authored_weight * clamp_unit(a);
        out[i] = static_cast<T>(at_most(omega, 1.0));
    }
    return bad;
}

template <class T>
std::int64_t second_pass(const T* HSCA_RESTRICT similarity, const T* HSCA_RESTRICT authority_weight,
                         const T* HSCA_RESTRICT coverage, std::size_t n, T kappa, T* HSCA_RESTRICT out) {
    const T ceiling = T(1) + kappa;
    Bits<T> bad = 0;
    for (std::size_t i = 0; i < n; ++i) {
        bad |= not_finite(similarity[i]) | not_finite(authority_weight[i]) | not_finite(coverage[i]);
        // The quotient comes first: it is at most 1, so the score is at most omega, rounding included.
        const T boost = (T(1) + kappa * clamp_unit(coverage[i])) / ceiling;
        out[i] = clamp_unit(authority_weight[i]) * (clamp_unit(similarity[i]) * boost);
    }
    return bad;
}

template <class T>
std::size_t count_above(const T* scores, std::size_t n, T floor) {
    Bits<T> count = 0;
    for (std::size_t i = 0; i < n; ++i) count += scores[i] > floor ? Bits<T>(1) : Bits<T>(0);
    return static_cast<std::size_t>(count);
}

template <class T>
constexpr CandidateKernels<T> kKernels = {recency<T>, hybrid<T>, authority<T>, second_pass<T>, count_above<T>};

}  // namespace

extern const CandidateKernels<float> HSCA_ISA_TABLE(float);
extern const CandidateKernels<double> HSCA_ISA_TABLE(double);
const CandidateKernels<float> HSCA_ISA_TABLE(float) = kKernels<float>;
const CandidateKernels<double> HSCA_ISA_TABLE(double) = kKernels<double>;

}  // namespace hsca
