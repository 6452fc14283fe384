#include "hsca/text/byte_class.hpp"

#include <array>

#if defined(__SSE2__) || defined(_M_X64)
#include <emmintrin.h>
#define HSCA_SSE2 1
#elif defined(__aarch64__) || defined(_M_ARM64)
#include <arm_neon.h>
#define HSCA_NEON 1
#endif

namespace hsca {

namespace {

constexpr std::uint8_t kWord = 1, kDigit = 2, kJoiner = 4, kSeparator = 8, kEvent = 16, kHigh = 32;

constexpr std::array<std::uint8_t, 256> make_byte_table() {
    std::array<std::uint8_t, 256> table{};
    for (int c = 'a'; c <= 'z'; ++c) table[static_cast<std::size_t>(c)] = kWord;
    for (int c = 'A'; c <= 'Z'; ++c) table[static_cast<std::size_t>(c)] = kWord;
    for (int c = '0'; c <= '9'; ++c) table[static_cast<std::size_t>(c)] = kWord | kDigit;
    for (const char c : {'\'', '-', '_'}) table[static_cast<std::size_t>(c)] = kJoiner;
    table[','] = kSeparator;
    table['.'] = kSeparator | kEvent;
    for (const char c : {'!', '?', '\n'}) table[static_cast<std::size_t>(c)] = kEvent;
    for (std::size_t c = 0x80; c < 0x100; ++c) table[c] = kHigh;
    return table;
}
constexpr auto kByteTable = make_byte_table();

void classify_bytes_scalar(const unsigned char* text, std::size_t n_blocks, ByteMasks* masks) {
    for (std::size_t b = 0; b < n_blocks; ++b, text += 64) {
        ByteMasks m{};
        for (unsigned i = 0; i < 64; ++i) {
            const std::uint64_t c = kByteTable[text[i]];
            m.word |= (c & 1) << i;
            m.digit |= (c >> 1 & 1) << i;
            m.joiner |= (c >> 2 & 1) << i;
            m.separator |= (c >> 3 & 1) << i;
            m.event |= (c >> 4 & 1) << i;
            m.high |= (c >> 5) << i;
        }
        masks[b] = m;
    }
}

#if defined(HSCA_SSE2)
struct Bytes {
    __m128i v;
    static Bytes load(const unsigned char* p) { return {_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))}; }
    std::uint64_t mask() const { return static_cast<std::uint32_t>(_mm_movemask_epi8(v)); }
    Bytes equals(char c) const { return {_mm_cmpeq_epi8(v, _mm_set1_epi8(c))}; }
    // lo <= byte < lo + count, unsigned: the signed comparison is exact after moving the range to the bottom.
    Bytes in_range(char lo, int count) const {
        const __m128i moved = _mm_add_epi8(v, _mm_set1_epi8(static_cast<char>(-128 - lo)));
        return {_mm_cmplt_epi8(moved, _mm_set1_epi8(static_cast<char>(-128 + count)))};
    }
    Bytes with_bit(char bit) const { return {_mm_or_si128(v, _mm_set1_epi8(bit))}; }
    Bytes operator|(Bytes o) const { return {_mm_or_si128(v, o.v)}; }
};

void classify_bytes_baseline(const unsigned char* text, std::size_t n_blocks, ByteMasks* masks) {
    for (std::size_t b = 0; b < n_blocks; ++b) {
        ByteMasks m{};
        for (unsigned i = 0; i < 64; i += 16, text += 16) {
            const Bytes bytes = Bytes::load(text);
            const Bytes digit = bytes.in_range('0', 10);
            const Bytes dot = bytes.equals('.');
            m.word |= (bytes.with_bit(0x20).in_range('a', 26) | digit).mask() << i;
            m.digit |= digit.mask() << i;
            m.joiner |= (bytes.equals('\'') | bytes.equals('-') | bytes.equals('_')).mask() << i;
            m.separator |= (dot | bytes.equals(',')).mask() << i;
            m.event |= (dot | bytes.equals('!') | bytes.equals('?') | bytes.equals('\n')).mask() << i;
            m.high |= bytes.mask() << i;
        }
        masks[b] = m;
    }
}
#elif defined(HSCA_NEON)
// One bit a byte out of four vectors of 0x00/0xFF bytes.
std::uint64_t bits_of(const std::array<uint8x16_t, 4>& v) {
    static const std::uint8_t kBit[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    const uint8x16_t bit = vld1q_u8(kBit);
    const uint8x16_t low = vpaddq_u8(vandq_u8(v[0], bit), vandq_u8(v[1], bit));
    const uint8x16_t all = vpaddq_u8(low, vpaddq_u8(vandq_u8(v[2], bit), vandq_u8(v[3], bit)));
    return vgetq_lane_u64(vreinterpretq_u64_u8(vpaddq_u8(all, all)), 0);
}

void classify_bytes_baseline(const unsigned char* text, std::size_t n_blocks, ByteMasks* masks) {
    for (std::size_t b = 0; b < n_blocks; ++b) {
        std::array<uint8x16_t, 4> word, digit, joiner, separator, event, high;
        for (std::size_t i = 0; i < 4; ++i, text += 16) {
            const uint8x16_t bytes = vld1q_u8(text);
            const auto equals = [&](char c) { return vceqq_u8(bytes, vdupq_n_u8(static_cast<std::uint8_t>(c))); };
            const auto in_range = [](uint8x16_t x, char lo, std::uint8_t count) {
                return vcltq_u8(vsubq_u8(x, vdupq_n_u8(static_cast<std::uint8_t>(lo))), vdupq_n_u8(count));
            };
            digit[i] = in_range(bytes, '0', 10);
            word[i] = vorrq_u8(in_range(vorrq_u8(bytes, vdupq_n_u8(0x20)), 'a', 26), digit[i]);
            joiner[i] = vorrq_u8(equals('\''), vorrq_u8(equals('-'), equals('_')));
            separator[i] = vorrq_u8(equals('.'), equals(','));
            event[i] = vorrq_u8(vorrq_u8(equals('.'), equals('!')), vorrq_u8(equals('?'), equals('\n')));
            high[i] = vcgeq_u8(bytes, vdupq_n_u8(0x80));
        }
        masks[b] = {bits_of(word), bits_of(digit), bits_of(joiner), bits_of(separator), bits_of(event), bits_of(high)};
    }
}
#else
constexpr ClassifyBytes classify_bytes_baseline = classify_bytes_scalar;
#endif

}  // namespace

std::string_view simd_name() noexcept {
#if defined(HSCA_SSE2)
    return "sse2";
#elif defined(HSCA_NEON)
    return "neon";
#else
    return "scalar";
#endif
}

ClassifyBytes classify_bytes(SimdLevel level) noexcept {
    return level == SimdLevel::scalar ? classify_bytes_scalar : classify_bytes_baseline;
}

}  // namespace hsca
