#include "hsca/text/token_masks.hpp"

#include <array>
#include <cstddef>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define HSCA_SSE2 1
#elif defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h>
#define HSCA_NEON 1
#endif

namespace hsca {

namespace {

constexpr std::uint8_t kSpace = 1, kCore = 2, kHigh = 4;

constexpr std::array<std::uint8_t, 256> make_byte_table() {
    std::array<std::uint8_t, 256> table{};
    for (unsigned c = 0; c < 256; ++c) {
        const bool is_space = (c >= 9 && c <= 13) || (c >= 28 && c <= 32);
        const bool is_alphanumeric = (c >= '0' && c <= '9') || ((c | 0x20) >= 'a' && (c | 0x20) <= 'z');
        const bool is_punctuation = c > 0x20 && c < 0x7F && !is_alphanumeric;
        table[c] = is_space ? kSpace : is_punctuation ? 0 : c < 0x80 ? kCore : kCore | kHigh;
    }
    return table;
}
constexpr auto kByteTable = make_byte_table();

}  // namespace

TokenMasks token_masks_scalar(const unsigned char* window) noexcept {
    TokenMasks m{};
    for (unsigned i = 0; i < 64; ++i) {
        const std::uint64_t c = kByteTable[window[i]];
        m.space |= (c & 1) << i;
        m.core |= (c >> 1 & 1) << i;
        m.high |= (c >> 2) << i;
    }
    return m;
}

#if defined(HSCA_SSE2)
TokenMasks token_masks(const unsigned char* window) noexcept {
    TokenMasks m{};
    for (unsigned i = 0; i < 64; i += 16) {
        const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(window + i));
        // lo <= byte < lo + count, unsigned: the signed comparison is exact after moving the range to the bottom.
        const auto in_range = [](__m128i x, int lo, int count) {
            const __m128i moved = _mm_add_epi8(x, _mm_set1_epi8(static_cast<char>(-128 - lo)));
            return _mm_cmplt_epi8(moved, _mm_set1_epi8(static_cast<char>(-128 + count)));
        };
        const auto bits = [](__m128i x) { return static_cast<std::uint64_t>(_mm_movemask_epi8(x)); };
        const __m128i space = _mm_or_si128(in_range(bytes, 9, 5), in_range(bytes, 28, 5));
        const __m128i graphic = in_range(bytes, 0x21, 0x7F - 0x21);
        const __m128i alphanumeric =
            _mm_or_si128(in_range(_mm_or_si128(bytes, _mm_set1_epi8(0x20)), 'a', 26), in_range(bytes, '0', 10));
        const __m128i punctuation = _mm_andnot_si128(alphanumeric, graphic);
        m.space |= bits(space) << i;
        m.core |= (bits(_mm_or_si128(space, punctuation)) ^ 0xFFFF) << i;
        m.high |= bits(bytes) << i;
    }
    return m;
}
#elif defined(HSCA_NEON)
TokenMasks token_masks(const unsigned char* window) noexcept {
    std::array<uint8x16_t, 4> space, core, high;
    for (std::size_t i = 0; i < 4; ++i) {
        const uint8x16_t bytes = vld1q_u8(window + 16 * i);
        const auto in_range = [](uint8x16_t x, std::uint8_t lo, std::uint8_t count) {
            return vcltq_u8(vsubq_u8(x, vdupq_n_u8(lo)), vdupq_n_u8(count));
        };
        space[i] = vorrq_u8(in_range(bytes, 9, 5), in_range(bytes, 28, 5));
        const uint8x16_t graphic = in_range(bytes, 0x21, 0x7F - 0x21);
        const uint8x16_t alphanumeric =
            vorrq_u8(in_range(vorrq_u8(bytes, vdupq_n_u8(0x20)), 'a', 26), in_range(bytes, '0', 10));
        core[i] = vmvnq_u8(vorrq_u8(space[i], vbicq_u8(graphic, alphanumeric)));
        high[i] = vcgeq_u8(bytes, vdupq_n_u8(0x80));
    }
    // One bit a byte out of four vectors of 0x00/0xFF bytes.
    const auto bits = [](const std::array<uint8x16_t, 4>& v) {
        static const std::uint8_t kBit[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
        const uint8x16_t bit = vld1q_u8(kBit);
        const uint8x16_t low = vpaddq_u8(vandq_u8(v[0], bit), vandq_u8(v[1], bit));
        const uint8x16_t all = vpaddq_u8(low, vpaddq_u8(vandq_u8(v[2], bit), vandq_u8(v[3], bit)));
        return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
    };
    return {bits(space), bits(core), bits(high)};
}
#else
TokenMasks token_masks(const unsigned char* window) noexcept { return token_masks_scalar(window); }
#endif

}  // namespace hsca
