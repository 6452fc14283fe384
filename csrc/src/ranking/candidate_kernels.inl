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

// Registers of float written out by hand where a value can be looked up by lane (AVX2 and later).
#if defined(HSCA_X86_KERNELS) && (defined(__AVX512F__) || defined(__AVX2__))
#define HSCA_LANES
#include <immintrin.h>
#endif

namespace hsca {

namespace {

template <class T>
struct Real;

template <>
struct Real<float> {
    using Bits = std::int32_t;
    static constexpr int kMantissaBits = 23;
    static constexpr float kMax = 3.40282347e+38f;
    static constexpr float kRound = 12582912.0f;              // 1.5 * 2^23: adding it rounds to an integer
    static constexpr float kMaxExponent = 64.0f * 1.442695f;  // as a power of two
    // (2^-g - 1) / g on |g| <= 1/2, highest power first: Chebyshev interpolation, off by 1e-8 in 2^-g.
    static constexpr float kSeries[] = {1.5453561402e-4f, -1.3391323593e-3f, 9.6180818073e-3f,
                                        -5.550356248e-2f, 0.24022650762f,    -0.69314718821f};
};

template <>
struct Real<double> {
    using Bits = std::int64_t;
    static constexpr int kMantissaBits = 52;
    static constexpr double kMax = 1.7976931348623157e+308;
    static constexpr double kRound = 6755399441055744.0;  // 1.5 * 2^52
    static constexpr double kMaxExponent = 600.0 * 1.442695;
    static constexpr double kSeries[] = {
        -4.4550362037811836586e-10, 7.0727277916723838277e-9, -1.0178062066309469594e-7, 1.3215441875881883002e-6,
        -1.5252733830461279738e-5,  1.5403530442908897599e-4, -1.3333558146416561707e-3, 9.6181291076061876231e-3,
        -5.5504108664821594925e-2,  0.2402265069591009932,    -0.69314718055994530942};  // off by 3e-17
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
    return from_bits<T>(bits > 0 ? bits : 0);
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

// lambda as a power of two: 2^-(lambda log2(e) age) needs no further reduction. Finite, so that age 0 gives exponent 0.
template <class T>
inline T as_power_of_two(T decay) {
    return at_most(decay * T(1.44269504088896338700), Real<T>::kMax);
}

// 2^-y for y >= 0: y = k - g with k whole and |g| <= 1/2 (both exact), the series of 2^g, and k taken from the
// exponent. Beyond kMaxExponent it stays at that value. So R is in (0, 1], as the document has it, and R times a weight
// is no subnormal number, which would take a hundred times as long.
template <class T>
inline T power_of_half(T y) {
    using R = Real<T>;
    y = at_most(y, R::kMaxExponent);
    const T rounded = R::kRound - y;
    const T g = y + (rounded - R::kRound);
    T series = R::kSeries[0];
    for (std::size_t i = 1; i < sizeof R::kSeries / sizeof(T); ++i) series = series * g + R::kSeries[i];
    series = series * g + T(1);
    // -k is in the lowest bits of `rounded`; the shift leaves nothing of the rest.
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
    constexpr double kLn2High = 6.93147180369123816490e-01, kLn2Low = 1.90821492927058770002e-10;
    return exponent * kLn2High + (2.0 * s * series + exponent * kLn2Low);
}

// Fetches what a loop reads or writes 2 KB later: hardware fetches ahead too, but no further than the end of a page.
constexpr std::size_t kAhead = 2048;

inline void prefetch(const void* from, std::size_t bytes) {
#if defined(__GNUC__)
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<std::uintptr_t>(from) + bytes));
#else
    static_cast<void>(from), static_cast<void>(bytes);
#endif
}

template <std::size_t kCount, class T>
inline void prefetch_block(const T* from) {
    for (std::size_t byte = 0; byte < kCount * sizeof(T); byte += 64) prefetch(from, kAhead + byte);
}

template <class T>
std::int64_t recency(const T* HSCA_RESTRICT age, std::size_t n, T decay, T* HSCA_RESTRICT out) {
    const T rate = as_power_of_two(decay);
    Bits<T> bad = 0;
    for (std::size_t i = 0; i < n; ++i) {
        bad |= not_finite(age[i]);
        out[i] = power_of_half(rate * clamp_age(age[i]));
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
    const ByScope<kFew, T> rate(terms.rate), weight(terms.weight);
    constexpr std::size_t kBlock = 256;
    Bits<T> scopes[kBlock];  // widened first, so that the loop after deals in elements of one size
    std::uint8_t last = 0;
    Bits<T> bad = 0;
    for (std::size_t begin = 0; begin < n; begin += kBlock) {
        const std::size_t end = n - begin < kBlock ? n : begin + kBlock;
        for (std::size_t i = begin; i < end; ++i) last = scope[i] > last ? scope[i] : last;
        for (std::size_t i = begin; i < end; ++i) scopes[i - begin] = scope[i];
        for (std::size_t i = begin; i < end; ++i) {
            const Bits<T> s = scopes[i - begin];
            bad |= not_finite(cosine[i]) | not_finite(age[i]);
            const T r = power_of_half(rate[s] * clamp_age(age[i]));
            T score = alpha * clamp_unit(cosine[i]) + beta * r + weight[s];
            if constexpr (kQuality) {
                bad |= not_finite(decay_rate[i]);
                score *= T(1) - delta * clamp_unit(decay_rate[i]);
            }
            out[i] = at_most(score, T(1));
        }
    }
    return bad | (last < terms.n_scopes ? Bits<T>(0) : Bits<T>(1));
}

#if defined(HSCA_LANES)
#include "candidate_lanes.inl"
#endif

template <class T>
std::int64_t hybrid(const T* cosine, const T* age, const std::uint8_t* scope, const T* decay_rate, std::size_t n,
                    const HybridTerms<T>& terms, T* out) {
    bool refused = false;
    std::size_t done = 0;
#if defined(HSCA_LANES)
    if constexpr (sizeof(T) == sizeof(float)) {
        if (terms.n_scopes <= Lanes::kCount) {
            const auto lanes = decay_rate ? hybrid_in_lanes<true> : hybrid_in_lanes<false>;
            done = lanes(cosine, age, scope, decay_rate, n, terms, out, refused);
            if (done == n) return refused;
        }
    }
#endif
    const bool few = terms.n_scopes <= 4;
    const auto loop = few ? (decay_rate ? hybrid_loop<true, true, T> : hybrid_loop<true, false, T>)
                          : (decay_rate ? hybrid_loop<false, true, T> : hybrid_loop<false, false, T>);
    return loop(cosine + done, age + done, scope + done, decay_rate ? decay_rate + done : nullptr, n - done, terms,
                out + done) |
           static_cast<std::int64_t>(refused);
}

// With Q = 1, and R = 1/2 after a half-life and 1 before it, no step is smaller, rounding included: a score is never
// above its bound.
template <bool kFew, class T>
std::int64_t contenders_loop(const T* HSCA_RESTRICT cosine, const T* HSCA_RESTRICT age,
                             const std::uint8_t* HSCA_RESTRICT scope, const T* HSCA_RESTRICT decay_rate, std::size_t n,
                             const HybridTerms<T>& terms, T floor, std::uint32_t* HSCA_RESTRICT rows, std::size_t first,
                             std::size_t& found) {
    const T alpha = terms.alpha, fresh = terms.beta, stale = terms.beta * T(0.5);
    const ByScope<kFew, T> rate(terms.rate), weight(terms.weight);
    constexpr std::size_t kBlock = 256;
    Bits<T> scopes[kBlock];
    T bounds[kBlock];
    std::uint8_t last = 0;
    Bits<T> bad = 0;
    for (std::size_t begin = first; begin < n; begin += kBlock) {
        const std::size_t end = n - begin < kBlock ? n : begin + kBlock;
        for (std::size_t i = begin; i < end; ++i) last = scope[i] > last ? scope[i] : last;
        for (std::size_t i = begin; i < end; ++i) scopes[i - begin] = scope[i];
        for (std::size_t i = begin; i < end; ++i) {
            bad |= not_finite(cosine[i]) | not_finite(age[i]);
            const Bits<T> s = scopes[i - begin];
            const T recency = rate[s] * age[i] >= T(1) ? stale : fresh;
            bounds[i - begin] = at_most(alpha * clamp_unit(cosine[i]) + recency + weight[s], T(1));
        }
        if (decay_rate) {
            for (std::size_t i = begin; i < end; ++i) bad |= not_finite(decay_rate[i]);
        }
        for (std::size_t i = begin; i < end; ++i) {
            rows[found] = static_cast<std::uint32_t>(i);
            found += bounds[i - begin] > floor;
        }
    }
    return bad | (last < terms.n_scopes ? Bits<T>(0) : Bits<T>(1));
}

template <class T>
std::int64_t hybrid_contenders(const T* cosine, const T* age, const std::uint8_t* scope, const T* decay_rate,
                               std::size_t n, const HybridTerms<T>& terms, T floor, std::uint32_t* rows,
                               std::size_t& found) {
    bool refused = false;
    std::size_t done = 0;
    found = 0;
#if defined(HSCA_LANES)
    if constexpr (sizeof(T) == sizeof(float)) {
        if (terms.n_scopes <= Lanes::kCount) {
            const auto lanes = decay_rate ? contenders_in_lanes<true> : contenders_in_lanes<false>;
            done = lanes(cosine, age, scope, decay_rate, n, terms, floor, rows, found, refused);
        }
    }
#endif
    const auto loop = terms.n_scopes <= 4 ? contenders_loop<true, T> : contenders_loop<false, T>;
    return loop(cosine, age, scope, decay_rate, n, terms, floor, rows, done, found) |
           static_cast<std::int64_t>(refused);
}

template <class T>
std::int64_t authority(const T* HSCA_RESTRICT age, const T* HSCA_RESTRICT access, const T* HSCA_RESTRICT authored,
                       std::size_t n, const AuthorityTerms<double>& given, T* HSCA_RESTRICT out) {
    const AuthorityTerms<double> terms = given;
    const double most = log_from_one(2.0 + terms.max_access), rate = as_power_of_two(terms.decay);
    std::int64_t bad = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const double t = static_cast<double>(age[i]), count = static_cast<double>(access[i]),
                     a = static_cast<double>(authored[i]);
        bad |= not_finite(t) | not_finite(count) | not_finite(a);
        const double f = log_from_one(1.0 + at_most(clamp_age(count), terms.max_access)) / most;
        const double omega = terms.recency_weight * power_of_half(rate * clamp_age(t)) + terms.frequency_weight * f +
                             terms.authored_weight * clamp_unit(a);
        out[i] = static_cast<T>(at_most(omega, 1.0));
    }
    return bad;
}

template <class T>
std::int64_t second_pass(const T* HSCA_RESTRICT similarity, const T* HSCA_RESTRICT authority_weight,
                         const T* HSCA_RESTRICT coverage, std::size_t n, T share, T* HSCA_RESTRICT out) {
    Bits<T> bad = 0;
    const auto score = [&](std::size_t i) {
        bad |= not_finite(similarity[i]) | not_finite(authority_weight[i]) | not_finite(coverage[i]);
        // Exactly 1 for M = 1 and never more: so the score is at most omega, rounding included.
        const T boost = T(1) - share * (T(1) - clamp_unit(coverage[i]));
        out[i] = clamp_unit(authority_weight[i]) * (clamp_unit(similarity[i]) * boost);
    };
    // Little is computed, so memory is what it waits for.
    constexpr std::size_t kBlock = 64;
    std::size_t begin = 0;
    for (; begin + kBlock <= n; begin += kBlock) {
        prefetch_block<kBlock>(similarity + begin);
        prefetch_block<kBlock>(authority_weight + begin);
        prefetch_block<kBlock>(coverage + begin);
        prefetch_block<kBlock>(out + begin);
        for (std::size_t i = begin; i < begin + kBlock; ++i) score(i);
    }
    for (std::size_t i = begin; i < n; ++i) score(i);
    return bad;
}

template <class T>
std::size_t count_above(const T* scores, std::size_t n, T floor) {
    Bits<T> count = 0;
    for (std::size_t i = 0; i < n; ++i) count += scores[i] > floor ? Bits<T>(1) : Bits<T>(0);
    return static_cast<std::size_t>(count);
}

template <class T>
constexpr CandidateKernels<T> kKernels = {recency<T>,   hybrid<T>,      hybrid_contenders<T>,
                                          authority<T>, second_pass<T>, count_above<T>};

}  // namespace

extern const CandidateKernels<float> HSCA_ISA_TABLE(float);
extern const CandidateKernels<double> HSCA_ISA_TABLE(double);
const CandidateKernels<float> HSCA_ISA_TABLE(float) = kKernels<float>;
const CandidateKernels<double> HSCA_ISA_TABLE(double) = kKernels<double>;

}  // namespace hsca
