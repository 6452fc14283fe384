// The loops of kernels.hpp, included by one translation unit for each instruction set. HSCA_ISA names the namespace and
// HSCA_WIDTH the bytes of a register. Vector types of the compiler (GCC, Clang) instead of intrinsics where they
// suffice.
#include "hsca/vectors/kernels.hpp"

namespace hsca::HSCA_ISA {

namespace {

constexpr std::size_t kLanes = 16;
constexpr std::size_t kWide = HSCA_WIDTH / sizeof(float);
constexpr std::size_t kParts = kLanes / kWide;

typedef float Wide __attribute__((vector_size(HSCA_WIDTH)));
typedef float WideUnaligned __attribute__((vector_size(HSCA_WIDTH), aligned(4)));
typedef float Quad __attribute__((vector_size(16)));
typedef float QuadUnaligned __attribute__((vector_size(16), aligned(4)));

struct Lanes {
    Wide part[kParts];
};

inline Wide load(const float* p) { return *reinterpret_cast<const WideUnaligned*>(p); }

inline void add_products(Lanes& sum, const float* a, const float* b) {
    for (std::size_t p = 0; p < kParts; ++p) sum.part[p] += load(a + p * kWide) * load(b + p * kWide);
}

// Lanes j + 8 and j + 4 folded onto lane j.
inline Quad fold(const Lanes& sum) {
#if HSCA_WIDTH == 64
    const Wide v = sum.part[0];
    const Quad a = __builtin_shufflevector(v, v, 0, 1, 2, 3), b = __builtin_shufflevector(v, v, 4, 5, 6, 7);
    const Quad c = __builtin_shufflevector(v, v, 8, 9, 10, 11), d = __builtin_shufflevector(v, v, 12, 13, 14, 15);
#elif HSCA_WIDTH == 32
    const Quad a = __builtin_shufflevector(sum.part[0], sum.part[0], 0, 1, 2, 3);
    const Quad b = __builtin_shufflevector(sum.part[0], sum.part[0], 4, 5, 6, 7);
    const Quad c = __builtin_shufflevector(sum.part[1], sum.part[1], 0, 1, 2, 3);
    const Quad d = __builtin_shufflevector(sum.part[1], sum.part[1], 4, 5, 6, 7);
#else
    const Quad a = sum.part[0], b = sum.part[1], c = sum.part[2], d = sum.part[3];
#endif
    return (a + c) + (b + d);
}

// Elements from `from` on that do not fill sixteen lanes: element from + j belongs to lane j.
inline void add_tail(Lanes& sum, const float* a, const float* b, std::size_t count) {
    float x[kLanes] = {}, y[kLanes] = {};
    for (std::size_t j = 0; j < count; ++j) {
        x[j] = a[j];
        y[j] = b[j];
    }
    add_products(sum, x, y);
}

inline float dot(const float* a, const float* b, std::size_t dims) {
    Lanes sum{};
    std::size_t j = 0;
    for (; j + kLanes <= dims; j += kLanes) add_products(sum, a + j, b + j);
    if (j < dims) add_tail(sum, a + j, b + j, dims - j);
    const Quad q = fold(sum);
    return (q[0] + q[2]) + (q[1] + q[3]);
}

// The sums of four rows, and the last additions are one.
inline void store_totals(const Lanes& s0, const Lanes& s1, const Lanes& s2, const Lanes& s3, float* out) {
    const Quad a = fold(s0), b = fold(s1), c = fold(s2), d = fold(s3);
    const Quad ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5), ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    const Quad cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5), cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    const Quad ab = ab_low + ab_high, cd = cd_low + cd_high;  // (x0 + x2 of a and b), (x1 + x3 of a and b)
    *reinterpret_cast<QuadUnaligned*>(out) =
        __builtin_shufflevector(ab, cd, 0, 1, 4, 5) + __builtin_shufflevector(ab, cd, 2, 3, 6, 7);
}

// Four rows at a time: a load of the query serves four.
inline void dot4(const float* query, const float* r0, const float* r1, const float* r2, const float* r3,
                 std::size_t dims, float* out) {
    Lanes s0{}, s1{}, s2{}, s3{};
    std::size_t j = 0;
    for (; j + kLanes <= dims; j += kLanes) {
        add_products(s0, query + j, r0 + j);
        add_products(s1, query + j, r1 + j);
        add_products(s2, query + j, r2 + j);
        add_products(s3, query + j, r3 + j);
    }
    if (j < dims) {
        add_tail(s0, query + j, r0 + j, dims - j);
        add_tail(s1, query + j, r1 + j, dims - j);
        add_tail(s2, query + j, r2 + j, dims - j);
        add_tail(s3, query + j, r3 + j, dims - j);
    }
    store_totals(s0, s1, s2, s3, out);
}

void dot_rows(const float* query, const float* rows, std::size_t stride, std::size_t n, std::size_t dims, float* out) {
    std::size_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float* r = rows + i * stride;
        dot4(query, r, r + stride, r + 2 * stride, r + 3 * stride, dims, out + i);
    }
    for (; i < n; ++i) out[i] = dot(query, rows + i * stride, dims);
}

// Four queries and four rows at a time, whole lanes only: a load serves four products. Only AVX-512 has the registers.
inline void dot4x4(const float* queries, std::size_t query_stride, const float* rows, std::size_t stride,
                   std::size_t dims, std::size_t out_stride, float* out) {
    struct FourRows {
        Lanes s0{}, s1{}, s2{}, s3{};

        void add(const float* query, const float* row, std::size_t stride) {
            add_products(s0, query, row);
            add_products(s1, query, row + stride);
            add_products(s2, query, row + 2 * stride);
            add_products(s3, query, row + 3 * stride);
        }
        void store(float* to) const { store_totals(s0, s1, s2, s3, to); }
    };
    FourRows a, b, c, d;
    for (std::size_t j = 0; j < dims; j += kLanes) {
        a.add(queries + j, rows + j, stride);
        b.add(queries + query_stride + j, rows + j, stride);
        c.add(queries + 2 * query_stride + j, rows + j, stride);
        d.add(queries + 3 * query_stride + j, rows + j, stride);
    }
    a.store(out);
    b.store(out + out_stride);
    c.store(out + 2 * out_stride);
    d.store(out + 3 * out_stride);
}

void dot_matrix(const float* queries, std::size_t n_queries, std::size_t query_stride, const float* rows,
                std::size_t n_rows, std::size_t stride, std::size_t dims, std::size_t out_stride, float* out) {
    std::size_t q = 0;
    for (; kParts == 1 && dims % kLanes == 0 && q + 4 <= n_queries; q += 4) {
        const float* four = queries + q * query_stride;
        std::size_t i = 0;
        for (; i + 4 <= n_rows; i += 4) {
            dot4x4(four, query_stride, rows + i * stride, stride, dims, out_stride, out + q * out_stride + i);
        }
        for (std::size_t t = 0; t < 4 && i < n_rows; ++t) {
            dot_rows(four + t * query_stride, rows + i * stride, stride, n_rows - i, dims,
                     out + (q + t) * out_stride + i);
        }
    }
    for (; q < n_queries; ++q) dot_rows(queries + q * query_stride, rows, stride, n_rows, dims, out + q * out_stride);
}

void dot_picked(const float* query, const float* rows, std::size_t stride, const std::uint32_t* which, std::size_t n,
                std::size_t dims, float* out) {
    // Rows far apart miss every cache: about sixty lines are under way at any time.
    const std::size_t lines = dims < 256 ? dims / 16 + 1 : 16, ahead = 64 / lines + 4;
    std::size_t i = 0, fetched = 0;
    for (; i + 4 <= n; i += 4) {
        for (; fetched < i + ahead && fetched < n; ++fetched) {
            const float* row = rows + which[fetched] * stride;
            for (std::size_t line = 0; line < lines; ++line) __builtin_prefetch(row + line * 16);
        }
        dot4(query, rows + which[i] * stride, rows + which[i + 1] * stride, rows + which[i + 2] * stride,
             rows + which[i + 3] * stride, dims, out + i);
    }
    for (; i < n; ++i) out[i] = dot(query, rows + which[i] * stride, dims);
}

inline std::int32_t code_sum(const std::int8_t* codes, std::size_t n) {
    std::int32_t sum = 0;
    for (std::size_t j = 0; j < n; ++j) sum += codes[j];
    return sum;
}

#if defined(__AVX512VNNI__)

template <std::size_t kQueries>
inline void code_block(const std::int8_t* queries, std::size_t segments, const std::int32_t* start,
                       const std::uint8_t* groups, std::size_t n_groups, std::size_t out_stride, std::int32_t* sums) {
    const std::size_t dims = segments * kSegment, quads = dims / 4;
    for (std::size_t g = 0; g < n_groups; ++g, groups += segments * kGroupBytes) {
        __m512i acc[kQueries];
        for (std::size_t q = 0; q < kQueries; ++q) acc[q] = _mm512_set1_epi32(start[q]);
        for (std::size_t t = 0; t < quads; ++t) {
            const __m512i rows = _mm512_loadu_si512(groups + t * 64);
            for (std::size_t q = 0; q < kQueries; ++q) {
                std::int32_t four;
                __builtin_memcpy(&four, queries + q * dims + t * 4, 4);
                acc[q] = _mm512_dpbusd_epi32(acc[q], rows, _mm512_set1_epi32(four));
            }
        }
        for (std::size_t q = 0; q < kQueries; ++q) _mm512_storeu_si512(sums + q * out_stride + g * kGroupRows, acc[q]);
    }
}

inline std::int32_t code_dot(__m512i query, const std::uint8_t* codes, std::int32_t start) {
    const __m512i acc = _mm512_dpbusd_epi32(_mm512_setzero_si512(), _mm512_loadu_si512(codes), query);
    return start + _mm512_reduce_add_epi32(acc);
}

void code_picked(const std::int8_t* query, const std::uint8_t* codes, std::size_t stride, const std::uint32_t* which,
                 std::size_t n, std::int32_t* sums) {
    const __m512i q = _mm512_loadu_si512(query);
    const std::int32_t start = -kCodeOffset * code_sum(query, kSegment);
    for (std::size_t i = 0; i < n; ++i) {
        if (i + 16 < n) __builtin_prefetch(codes + which[i + 16] * stride);
        sums[i] += code_dot(q, codes + which[i] * stride, start);
    }
}

#elif defined(__AVX2__)

// Codes widened to 16 bits: products of two bytes would saturate in maddubs.
template <std::size_t kQueries>
inline void code_block(const std::int8_t* queries, std::size_t segments, const std::int32_t* start,
                       const std::uint8_t* groups, std::size_t n_groups, std::size_t out_stride, std::int32_t* sums) {
    const std::size_t dims = segments * kSegment, quads = dims / 4;
    for (std::size_t g = 0; g < n_groups; ++g, groups += segments * kGroupBytes) {
        for (std::size_t quarter = 0; quarter < 4; ++quarter) {  // four rows
            __m256i acc[kQueries];
            for (std::size_t q = 0; q < kQueries; ++q) acc[q] = _mm256_setzero_si256();
            for (std::size_t t = 0; t < quads; ++t) {
                const auto* at = reinterpret_cast<const __m128i*>(groups + t * 64 + quarter * 16);
                const __m256i rows = _mm256_cvtepu8_epi16(_mm_loadu_si128(at));
                for (std::size_t q = 0; q < kQueries; ++q) {
                    std::int32_t four;
                    __builtin_memcpy(&four, queries + q * dims + t * 4, 4);
                    const __m256i wide = _mm256_cvtepi8_epi16(_mm_set1_epi32(four));
                    acc[q] = _mm256_add_epi32(acc[q], _mm256_madd_epi16(rows, wide));
                }
            }
            for (std::size_t q = 0; q < kQueries; ++q) {
                const __m128i low = _mm256_castsi256_si128(acc[q]), high = _mm256_extracti128_si256(acc[q], 1);
                const __m128i rows = _mm_add_epi32(_mm_hadd_epi32(low, high), _mm_set1_epi32(start[q]));
                auto* at = reinterpret_cast<__m128i*>(sums + q * out_stride + g * kGroupRows + quarter * 4);
                _mm_storeu_si128(at, rows);
            }
        }
    }
}

void code_picked(const std::int8_t* query, const std::uint8_t* codes, std::size_t stride, const std::uint32_t* which,
                 std::size_t n, std::int32_t* sums) {
    __m256i q[4];
    for (int p = 0; p < 4; ++p) {
        q[p] = _mm256_cvtepi8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(query + p * 16)));
    }
    const std::int32_t start = -kCodeOffset * code_sum(query, kSegment);
    for (std::size_t i = 0; i < n; ++i) {
        if (i + 16 < n) __builtin_prefetch(codes + which[i + 16] * stride);
        const std::uint8_t* row = codes + which[i] * stride;
        __m256i acc = _mm256_setzero_si256();
        for (int p = 0; p < 4; ++p) {
            const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(row + p * 16));
            acc = _mm256_add_epi32(acc, _mm256_madd_epi16(_mm256_cvtepu8_epi16(bytes), q[p]));
        }
        __m128i four = _mm_add_epi32(_mm256_castsi256_si128(acc), _mm256_extracti128_si256(acc, 1));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4E));
        four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xB1));
        sums[i] += start + _mm_cvtsi128_si32(four);
    }
}

#else

template <std::size_t kQueries>
inline void code_block(const std::int8_t* queries, std::size_t segments, const std::int32_t* start,
                       const std::uint8_t* groups, std::size_t n_groups, std::size_t out_stride, std::int32_t* sums) {
    const std::size_t dims = segments * kSegment, quads = dims / 4;
    for (std::size_t g = 0; g < n_groups; ++g, groups += segments * kGroupBytes) {
        for (std::size_t q = 0; q < kQueries; ++q) {
            std::int32_t acc[kGroupRows];
            for (std::size_t r = 0; r < kGroupRows; ++r) acc[r] = start[q];
            for (std::size_t t = 0; t < quads; ++t) {
                const std::int8_t* four = queries + q * dims + t * 4;
                const std::uint8_t* rows = groups + t * 64;
                for (std::size_t r = 0; r < kGroupRows; ++r) {
                    acc[r] += rows[4 * r] * four[0] + rows[4 * r + 1] * four[1] + rows[4 * r + 2] * four[2] +
                              rows[4 * r + 3] * four[3];
                }
            }
            for (std::size_t r = 0; r < kGroupRows; ++r) sums[q * out_stride + g * kGroupRows + r] = acc[r];
        }
    }
}

void code_picked(const std::int8_t* query, const std::uint8_t* codes, std::size_t stride, const std::uint32_t* which,
                 std::size_t n, std::int32_t* sums) {
    const std::int32_t start = -kCodeOffset * code_sum(query, kSegment);
    for (std::size_t i = 0; i < n; ++i) {
        const std::uint8_t* row = codes + which[i] * stride;
        std::int32_t sum = start;
        for (std::size_t j = 0; j < kSegment; ++j) sum += row[j] * query[j];
        sums[i] += sum;
    }
}

#endif

void code_groups(const std::int8_t* queries, std::size_t n_queries, const std::uint8_t* groups, std::size_t n_groups,
                 std::size_t segments, std::size_t stride, std::int32_t* sums) {
    const std::size_t dims = segments * kSegment;
    std::size_t q = 0;
    std::int32_t start[4];
    for (; q + 4 <= n_queries; q += 4) {
        for (std::size_t i = 0; i < 4; ++i) start[i] = -kCodeOffset * code_sum(queries + (q + i) * dims, dims);
        code_block<4>(queries + q * dims, segments, start, groups, n_groups, stride, sums + q * stride);
    }
    for (; q < n_queries; ++q) {
        start[0] = -kCodeOffset * code_sum(queries + q * dims, dims);
        code_block<1>(queries + q * dims, segments, start, groups, n_groups, stride, sums + q * stride);
    }
}

inline float bound(std::int32_t sum, float scale, float error, float residual, const BoundTerms& terms) {
    return ((static_cast<float>(sum) * (scale * terms.step) + error * terms.error_weight) +
            residual * terms.residual_weight) +
           terms.rest;
}

std::size_t select_bounds(const std::int32_t* sums, const float* scale, const float* error, const float* residual,
                          std::size_t n, const BoundTerms& terms, float least, std::uint32_t* found) {
    std::size_t count = 0, i = 0;
#if defined(__AVX512VNNI__)
    const __m512 step = _mm512_set1_ps(terms.step), error_weight = _mm512_set1_ps(terms.error_weight);
    const __m512 residual_weight = _mm512_set1_ps(terms.residual_weight), rest = _mm512_set1_ps(terms.rest);
    const __m512 floor = _mm512_set1_ps(least);
    __m512i index = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    for (; i + 16 <= n; i += 16, index = _mm512_add_epi32(index, _mm512_set1_epi32(16))) {
        const __m512 sum = _mm512_cvtepi32_ps(_mm512_loadu_si512(sums + i));
        __m512 b = _mm512_add_ps(_mm512_mul_ps(sum, _mm512_mul_ps(_mm512_loadu_ps(scale + i), step)),
                                 _mm512_mul_ps(_mm512_loadu_ps(error + i), error_weight));
        const __m512 r = residual ? _mm512_loadu_ps(residual + i) : _mm512_setzero_ps();
        b = _mm512_add_ps(_mm512_add_ps(b, _mm512_mul_ps(r, residual_weight)), rest);
        const __mmask16 reach = _mm512_cmp_ps_mask(b, floor, _CMP_GE_OQ);
        _mm512_storeu_si512(found + count, _mm512_maskz_compress_epi32(reach, index));
        count += static_cast<std::size_t>(__builtin_popcount(reach));
    }
#endif
    for (; i < n; ++i) {
        found[count] = static_cast<std::uint32_t>(i);
        count += bound(sums[i], scale[i], error[i], residual ? residual[i] : 0.0f, terms) >= least;
    }
    return count;
}

constexpr std::size_t kDoubleWide = HSCA_WIDTH / sizeof(double);
constexpr std::size_t kDoubleParts = 32 / kDoubleWide;
typedef double DoubleWide __attribute__((vector_size(HSCA_WIDTH)));

// As many float64 from float32. Intrinsics, since GCC 12 takes a conversion of vector types apart.
inline DoubleWide widened(const float* at) {
#if HSCA_WIDTH == 64
    return reinterpret_cast<DoubleWide>(_mm512_cvtps_pd(_mm256_loadu_ps(at)));
#elif HSCA_WIDTH == 32
    return reinterpret_cast<DoubleWide>(_mm256_cvtps_pd(_mm_loadu_ps(at)));
#else
    typedef float HalfUnaligned __attribute__((vector_size(HSCA_WIDTH / 2), aligned(4)));
    return __builtin_convertvector(*reinterpret_cast<const HalfUnaligned*>(at), DoubleWide);
#endif
}

inline void add_square(DoubleWide& sum, DoubleWide x) {
#if HSCA_WIDTH == 64
    // The square of a float32 is exact in float64: fused or not, the bits are the same.
    sum = reinterpret_cast<DoubleWide>(_mm512_fmadd_pd(x, x, sum));
#else
    sum += x * x;
#endif
}

// The sum of squares of a row, carried on from prefix to prefix in 32 float64 lanes; element j belongs to lane j % 32.
struct SquareSum {
    DoubleWide part[kDoubleParts] = {};

    void add_one(float x, std::size_t lane) {
        part[lane / kDoubleWide][lane % kDoubleWide] += static_cast<double>(x) * static_cast<double>(x);
    }
    void add(const float* row, std::size_t from, std::size_t to) {
        for (; from < to && from % 32 != 0; ++from) add_one(row[from], from % 32);
        for (; from + 32 <= to; from += 32) {
            for (std::size_t p = 0; p < kDoubleParts; ++p) add_square(part[p], widened(row + from + p * kDoubleWide));
        }
        for (; from < to; ++from) add_one(row[from], from % 32);
    }
    double total() const {
        DoubleWide sum[kDoubleParts];
        for (std::size_t p = 0; p < kDoubleParts; ++p) sum[p] = part[p];
        for (std::size_t half = kDoubleParts / 2; half > 0; half /= 2) {
            for (std::size_t p = 0; p < half; ++p) sum[p] += sum[p + half];
        }
        double lanes[kDoubleWide];
        __builtin_memcpy(lanes, sum, sizeof lanes);
        for (std::size_t half = kDoubleWide / 2; half > 0; half /= 2) {
            for (std::size_t l = 0; l < half; ++l) lanes[l] += lanes[l + half];
        }
        return lanes[0];
    }
};

constexpr double kLeastScale = 1e-37, kMostScale = 1e38;

// Plain stores: past the caches was a fifth slower on a Cascade Lake guest, at sizes that fit no cache, too.
inline void scale_row(const float* __restrict row, float scale, std::size_t n, float* __restrict out) {
    for (std::size_t i = 0; i < n; ++i) out[i] = row[i] * scale;
}

double prefix_norm(const float* row, const std::size_t* dims, std::size_t n_tiers, double eps_squared,
                   float* const* tiers, float* inverse) {
    SquareSum squares;
    double sum = 0.0;
    for (std::size_t t = 0, from = 0; t < n_tiers; from = dims[t++]) {
        squares.add(row, from, dims[t]);
        sum = squares.total();
        const double scale = sum > 0.0 ? 1.0 / __builtin_sqrt(sum + eps_squared) : 0.0;
        const double in_range = scale < kMostScale ? scale : kMostScale;
        if (inverse) inverse[t] = static_cast<float>(in_range);
        if (!tiers) continue;
        if (sum == 0.0 || (scale > kLeastScale && scale < kMostScale)) {
            scale_row(row, static_cast<float>(scale), dims[t], tiers[t]);
        } else {  // a factor that float32 does not hold, or not with all its digits
            for (std::size_t i = 0; i < dims[t]; ++i) tiers[t][i] = static_cast<float>(row[i] * scale);
        }
    }
    return sum;
}

float largest(const float* x, std::size_t n) {
    float lanes[kLanes] = {};
    std::size_t j = 0;
    for (; j + kLanes <= n; j += kLanes) {
        for (std::size_t l = 0; l < kLanes; ++l) {
            const float size = __builtin_fabsf(x[j + l]);
            lanes[l] = lanes[l] < size ? size : lanes[l];
        }
    }
    for (; j < n; ++j) {
        const float size = __builtin_fabsf(x[j]);
        lanes[0] = lanes[0] < size ? size : lanes[0];
    }
    for (std::size_t l = 1; l < kLanes; ++l) lanes[0] = lanes[0] < lanes[l] ? lanes[l] : lanes[0];
    return lanes[0];
}

inline float lane_total(const float* lanes) {
    float sum[8];
    for (std::size_t l = 0; l < 8; ++l) sum[l] = lanes[l] + lanes[l + 8];
    for (std::size_t half = 4; half > 0; half /= 2) {
        for (std::size_t l = 0; l < half; ++l) sum[l] += sum[l + half];
    }
    return sum[0];
}

void quantise(const float* segment, float factor, float step, std::int8_t* codes, float* energy, float* error) {
    // The inverse of a smaller step is infinite: such values have the code 0, and are all error.
    const float inverse_step = step > 3e-39f ? 1.0f / step : 0.0f;
    float energies[kLanes] = {}, errors[kLanes] = {};
    for (std::size_t j = 0; j < kSegment; j += kLanes) {
        for (std::size_t l = 0; l < kLanes; ++l) {
            const float value = segment[j + l] * factor;
            // Adding and taking away 3 * 2^22 rounds to the nearest integer.
            float code = (value * inverse_step + 12582912.0f) - 12582912.0f;
            code = code > 127.0f ? 127.0f : code < -127.0f ? -127.0f : code;
            const float off = value - step * code;
            codes[j + l] = static_cast<std::int8_t>(static_cast<std::int32_t>(code));
            energies[l] += value * value;
            errors[l] += off * off;
        }
    }
    *energy = lane_total(energies);
    *error = lane_total(errors);
}

}  // namespace

const VectorKernels kernels = {dot_rows,      dot_matrix,  dot_picked, code_groups, code_picked,
                               select_bounds, prefix_norm, largest,    quantise};

}  // namespace hsca::HSCA_ISA
