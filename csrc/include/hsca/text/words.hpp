// words.hpp -- a word's identity: its case-folded UTF-8, packed so that most words are compared as two integers.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string_view>
#include <vector>

namespace hsca {

// Folded words of at most 16 bytes are their own key, zero-padded. Longer ones are 120 bits of hash under a last byte
// of 0xFF, which no UTF-8 text holds, so the two kinds never meet.
struct WordKey {
    std::uint64_t low;
    std::uint64_t high;
    bool operator==(const WordKey&) const = default;
};

inline std::uint64_t mix(std::uint64_t x) noexcept {
    x ^= x >> 32;
    x *= 0xD6E8FEB86659FD93ull;
    return x ^ x >> 29;
}

inline std::uint64_t hash_key(const WordKey& key) noexcept {
    return mix(key.low * 0x9E3779B97F4A7C15ull ^ (key.high * 0xC2B2AE3D27D4EB4Full >> 7));
}

// kKeyMask[n] keeps the first n bytes of a key.
struct KeyMasks {
    WordKey masks[17];
    constexpr KeyMasks() : masks{} {
        for (std::size_t n = 0; n <= 16; ++n) {
            masks[n].low = n >= 8 ? ~0ull : (1ull << 8 * n) - 1;
            masks[n].high = n == 16 ? ~0ull : n <= 8 ? 0 : (1ull << 8 * (n - 8)) - 1;
        }
    }
    constexpr const WordKey& operator[](std::size_t n) const { return masks[n]; }
};
inline constexpr KeyMasks kKeyMask;
static_assert(std::endian::native == std::endian::little, "word keys are read as little-endian integers");

// A word's key and the length of its folded form.
struct FoldedWord {
    WordKey key;
    std::uint32_t length;  // bytes
    bool is_single_character;
    bool is_unspaced;  // of a script without spaces
};

// Any word; `folded` is scratch.
FoldedWord fold_word_slowly(std::span<const unsigned char> word, std::vector<unsigned char>& folded);

// Tries the quick path: ASCII words of at most 16 bytes, nearly all of English, never leave registers.
// Nothing at or past `end_of_text` is read. False: take fold_word_slowly.
inline bool fold_word_quickly(const unsigned char* word, std::size_t length, const unsigned char* end_of_text,
                              WordKey& key) noexcept {
    constexpr std::uint64_t kHighBits = 0x8080808080808080ull;
    constexpr std::uint64_t kCase =
        0x2020202020202020ull;  // every ASCII byte of a word but a capital and '_' has this bit
    if (length > 16) [[unlikely]]
        return false;
    const WordKey& mask = kKeyMask[length];
    if (end_of_text - word >= 16) [[likely]] {
        std::memcpy(&key.low, word, 8);
        std::memcpy(&key.high, word + 8, 8);
    } else {
        key = {0, 0};
        std::memcpy(&key, word, length);
    }
    key.low = (key.low | kCase) & mask.low;
    key.high = (key.high | kCase) & mask.high;
    return !((key.low | key.high) & kHighBits);
}

// Inflections fold together: drops a final 's, then one of ing ed es ly s e, when at least four bytes remain.
// The key and length are those of a folded word of at most 16 bytes; longer words keep theirs.
inline WordKey stem(const WordKey& key, std::uint32_t length) noexcept {
    if (length < 5 || length > 16) return key;
    const auto last_four = [&key](std::uint32_t n) {
        std::uint32_t bytes;
        std::memcpy(&bytes, reinterpret_cast<const char*>(&key) + n - 4, 4);
        return bytes;
    };
    constexpr std::uint32_t apostrophe_s = '\'' | 's' << 8, ed = 'e' | 'd' << 8, es = 'e' | 's' << 8,
                            ly = 'l' | 'y' << 8;
    constexpr std::uint32_t ing = 'i' | 'n' << 8 | 'g' << 16;
    std::uint32_t tail = last_four(length);
    if (tail >> 16 == apostrophe_s) [[unlikely]] {
        length -= 2;
        if (length < 5) return {key.low & kKeyMask[length].low, key.high & kKeyMask[length].high};
        tail = last_four(length);
    }
    const std::uint32_t last = tail >> 24, two = tail >> 16;
    std::uint32_t drop = static_cast<std::uint32_t>(last == 's') | static_cast<std::uint32_t>(last == 'e');
    const std::uint32_t drops_two = static_cast<std::uint32_t>(two == ed) | static_cast<std::uint32_t>(two == es) |
                                    static_cast<std::uint32_t>(two == ly);
    drop = (drops_two & static_cast<std::uint32_t>(length >= 6)) ? 2 : drop;
    drop = (static_cast<std::uint32_t>(tail >> 8 == ing) & static_cast<std::uint32_t>(length >= 7)) ? 3 : drop;
    const WordKey& mask = kKeyMask[length - drop];
    return {key.low & mask.low, key.high & mask.high};
}

// Key of a word given as text, for tables.
WordKey folded_key(std::string_view word);

}  // namespace hsca
