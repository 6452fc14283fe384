// candidate_lanes.inl -- the hybrid loop of candidate_kernels.inl over registers of float, for instruction sets that
// look up a value by lane. Included there, inside its namespace.
//
// R is a chain of twenty operations that wait for each other. A compiler finishes one register before it begins the
// next, and more of such chains than two or three do not fit what a processor looks ahead. So four registers go through
// every step together. The steps are those of the loop in candidate_kernels.inl, in its order: the bits are the same.

#if defined(__AVX512F__)
struct Lanes {
    using Floats = __m512;
    using Ints = __m512i;
    static constexpr std::size_t kCount = 16;  // floats in a register, and as many scopes can be looked up

    static Floats load(const float* from) { return _mm512_loadu_ps(from); }
    static void store(float* to, Floats x) { _mm512_storeu_ps(to, x); }
    static Floats all(float x) { return _mm512_set1_ps(x); }
    static Ints bits(Floats x) { return _mm512_castps_si512(x); }
    static Floats from_bits(Ints x) { return _mm512_castsi512_ps(x); }
    static Ints no_bits() { return _mm512_setzero_si512(); }
    static Ints either(Ints x, Ints y) { return _mm512_or_si512(x, y); }
    static Ints sum(Ints x, Ints y) { return _mm512_add_epi32(x, y); }
    static Ints exponent(Ints x) { return _mm512_slli_epi32(x, Real<float>::kMantissaBits); }
    static Floats larger(Floats x, Floats y) { return from_bits(_mm512_max_epi32(bits(x), bits(y))); }
    static Floats smaller(Floats x, Floats y) { return from_bits(_mm512_min_epi32(bits(x), bits(y))); }
    static bool any(Ints x) { return _mm512_test_epi32_mask(x, x) != 0; }

    static __m128i bytes(const std::uint8_t* from) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)); }
    static Ints widened(__m128i bytes) { return _mm512_cvtepu8_epi32(bytes); }
    static Floats look_up(Floats table, Ints scopes) { return _mm512_permutexvar_ps(scopes, table); }
    static Floats where_from(Floats x, Floats least, Floats then, Floats otherwise) {
        return _mm512_mask_blend_ps(_mm512_cmp_ps_mask(x, least, _CMP_GE_OQ), otherwise, then);
    }
    // Writes first + j for each lane j of x that is above that of y, and returns how many; may write kCount numbers.
    static std::size_t write_above(Floats x, Floats y, std::size_t first, std::uint32_t* to) {
        const __mmask16 lanes = _mm512_cmp_ps_mask(x, y, _CMP_GT_OQ);
        const Ints rows = _mm512_add_epi32(_mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15),
                                           _mm512_set1_epi32(static_cast<int>(first)));
        _mm512_storeu_si512(to, _mm512_maskz_compress_epi32(lanes, rows));
        return static_cast<std::size_t>(__builtin_popcount(lanes));
    }
};
#else
struct Lanes {
    using Floats = __m256;
    using Ints = __m256i;
    static constexpr std::size_t kCount = 8;

    static Floats load(const float* from) { return _mm256_loadu_ps(from); }
    static void store(float* to, Floats x) { _mm256_storeu_ps(to, x); }
    static Floats all(float x) { return _mm256_set1_ps(x); }
    static Ints bits(Floats x) { return _mm256_castps_si256(x); }
    static Floats from_bits(Ints x) { return _mm256_castsi256_ps(x); }
    static Ints no_bits() { return _mm256_setzero_si256(); }
    static Ints either(Ints x, Ints y) { return _mm256_or_si256(x, y); }
    static Ints sum(Ints x, Ints y) { return _mm256_add_epi32(x, y); }
    static Ints exponent(Ints x) { return _mm256_slli_epi32(x, Real<float>::kMantissaBits); }
    static Floats larger(Floats x, Floats y) { return from_bits(_mm256_max_epi32(bits(x), bits(y))); }
    static Floats smaller(Floats x, Floats y) { return from_bits(_mm256_min_epi32(bits(x), bits(y))); }
    static bool any(Ints x) { return !_mm256_testz_si256(x, x); }

    static __m128i bytes(const std::uint8_t* from) { return _mm_loadl_epi64(reinterpret_cast<const __m128i*>(from)); }
    static Ints widened(__m128i bytes) { return _mm256_cvtepu8_epi32(bytes); }
    static Floats look_up(Floats table, Ints scopes) { return _mm256_permutevar8x32_ps(table, scopes); }
    static Floats where_from(Floats x, Floats least, Floats then, Floats otherwise) {
        return _mm256_blendv_ps(otherwise, then, _mm256_cmp_ps(x, least, _CMP_GE_OQ));
    }
    static std::size_t write_above(Floats x, Floats y, std::size_t first, std::uint32_t* to) {
        auto lanes = static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(x, y, _CMP_GT_OQ)));
        std::size_t found = 0;
        for (; lanes; lanes &= lanes - 1) {
            to[found++] = static_cast<std::uint32_t>(first) + static_cast<std::uint32_t>(__builtin_ctz(lanes));
        }
        return found;
    }
};
#endif

constexpr std::size_t kTogether = 4, kStride = kTogether * Lanes::kCount;

// body(0) to body(3): written out, so that arrays of registers are registers.
template <class Body>
inline __attribute__((always_inline)) void together(Body&& body) {
    body(std::size_t{0});
    body(std::size_t{1});
    body(std::size_t{2});
    body(std::size_t{3});
}

inline bool all_known(__m128i scopes, std::size_t n_scopes) {
    const __m128i known = _mm_set1_epi8(static_cast<char>(n_scopes - 1));
    return _mm_movemask_epi8(_mm_cmpeq_epi8(_mm_max_epu8(scopes, known), known)) == 0xFFFF;
}

// The first rows, as many as fill whole strides; the rest is left to the caller. Returns how many. The mark of
// a refused input goes to `refused`.
template <bool kQuality>
std::size_t hybrid_in_lanes(const float* HSCA_RESTRICT cosine, const float* HSCA_RESTRICT age,
                            const std::uint8_t* HSCA_RESTRICT scope, const float* HSCA_RESTRICT decay_rate,
                            std::size_t n, const HybridTerms<float>& terms, float* HSCA_RESTRICT out, bool& refused) {
    using L = Lanes;
    using R = Real<float>;
    const typename L::Floats zero = L::all(0.0f), one = L::all(1.0f), alpha = L::all(terms.alpha),
                             beta = L::all(terms.beta), delta = L::all(terms.delta), rates = L::load(terms.rate),
                             weights = L::load(terms.weight), round = L::all(R::kRound), most = L::all(R::kMaxExponent);
    typename L::Ints bad = L::no_bits();
    __m128i last = _mm_setzero_si128();
    const auto note = [&](typename L::Floats x) { bad = L::either(bad, L::bits(x - x)); };
    const auto unit = [&](typename L::Floats x) { return L::smaller(L::larger(x, zero), one); };
    std::size_t row = 0;
    for (; row + kStride <= n; row += kStride) {
        typename L::Floats y[kTogether], rounded[kTogether], r[kTogether];
        const auto place = [row](std::size_t j) { return row + j * L::kCount; };
        prefetch_block<kStride>(cosine + row);
        prefetch_block<kStride>(age + row);
        if constexpr (kQuality) prefetch_block<kStride>(decay_rate + row);
        prefetch(scope + row, kAhead);
        together([&](std::size_t j) {
            const auto seconds = L::load(age + place(j));
            const __m128i scopes = L::bytes(scope + place(j));
            note(seconds);
            last = _mm_max_epu8(last, scopes);
            y[j] = L::look_up(rates, L::widened(scopes)) * L::larger(seconds, zero);
        });
        together([&](std::size_t j) { y[j] = L::smaller(y[j], most); });
        together([&](std::size_t j) { rounded[j] = round - y[j]; });
        together([&](std::size_t j) { r[j] = rounded[j] - round; });
        together([&](std::size_t j) { y[j] = y[j] + r[j]; });
        together([&](std::size_t j) { r[j] = L::all(R::kSeries[0]) * y[j]; });
        for (std::size_t i = 1; i < sizeof R::kSeries / sizeof(float); ++i) {
            const auto next = L::all(R::kSeries[i]);
            together([&](std::size_t j) { r[j] = r[j] + next; });
            together([&](std::size_t j) { r[j] = r[j] * y[j]; });
        }
        together([&](std::size_t j) { r[j] = r[j] + one; });
        together([&](std::size_t j) { r[j] = L::from_bits(L::sum(L::bits(r[j]), L::exponent(L::bits(rounded[j])))); });
        together([&](std::size_t j) { r[j] = beta * r[j]; });
        together([&](std::size_t j) {
            const auto similarity = L::load(cosine + place(j));
            note(similarity);
            r[j] = alpha * unit(similarity) + r[j];
        });
        together([&](std::size_t j) { r[j] = r[j] + L::look_up(weights, L::widened(L::bytes(scope + place(j)))); });
        if constexpr (kQuality) {
            together([&](std::size_t j) {
                const auto decayed = L::load(decay_rate + place(j));
                note(decayed);
                r[j] = r[j] * (one - delta * unit(decayed));
            });
        }
        together([&](std::size_t j) { L::store(out + place(j), L::smaller(r[j], one)); });
    }
    refused = L::any(bad) || !all_known(last, terms.n_scopes);
    return row;
}

// The same for the rows that may be above `floor`.
template <bool kQuality>
std::size_t contenders_in_lanes(const float* HSCA_RESTRICT cosine, const float* HSCA_RESTRICT age,
                                const std::uint8_t* HSCA_RESTRICT scope, const float* HSCA_RESTRICT decay_rate,
                                std::size_t n, const HybridTerms<float>& terms, float floor,
                                std::uint32_t* HSCA_RESTRICT rows, std::size_t& total, bool& refused) {
    using L = Lanes;
    const typename L::Floats zero = L::all(0.0f), one = L::all(1.0f), alpha = L::all(terms.alpha),
                             fresh = L::all(terms.beta), stale = L::all(terms.beta * 0.5f), least = L::all(floor),
                             rates = L::load(terms.rate), weights = L::load(terms.weight);
    typename L::Ints bad = L::no_bits();
    __m128i last = _mm_setzero_si128();
    const auto note = [&](typename L::Floats x) { bad = L::either(bad, L::bits(x - x)); };
    std::size_t row = 0, found = 0;
    for (; row + kStride <= n; row += kStride) {
        prefetch_block<kStride>(cosine + row);
        prefetch_block<kStride>(age + row);
        if constexpr (kQuality) prefetch_block<kStride>(decay_rate + row);
        prefetch(scope + row, kAhead);
        together([&](std::size_t j) {
            const std::size_t place = row + j * L::kCount;
            const auto similarity = L::load(cosine + place), seconds = L::load(age + place);
            const __m128i bytes = L::bytes(scope + place);
            const auto scopes = L::widened(bytes);
            note(similarity);
            note(seconds);
            if constexpr (kQuality) note(L::load(decay_rate + place));
            last = _mm_max_epu8(last, bytes);
            const auto recency = L::where_from(L::look_up(rates, scopes) * seconds, one, stale, fresh);
            const auto bound =
                alpha * L::smaller(L::larger(similarity, zero), one) + recency + L::look_up(weights, scopes);
            found += L::write_above(L::smaller(bound, one), least, place, rows + found);
        });
    }
    total = found;
    refused = L::any(bad) || !all_known(last, terms.n_scopes);
    return row;
}
