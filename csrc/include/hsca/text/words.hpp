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

// Folded words of at most 16 bytes are their own key, zero-padded. Longer ones are 120 bits of hash under a last byte of
// 0xFF, which no UTF-8 text holds, so the two kinds never meet.
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

// kByteMask[n] keeps the first n bytes of a little-endian load.
inline constexpr std::uint64_t kByteMask[9] = {0x0,          0xFF,           0xFFFF,           0xFFFFFF,          0xFFFFFFFF,
                                               0xFFFFFFFFFF, 0xFFFFFFFFFFFF, 0xFFFFFFFFFFFFFF, 0xFFFFFFFFFFFFFFFF};
static_assert(std::endian::native == std::endian::little, "word keys are read as little-endian integers");

// A word's key and the length of its folded form.
struct FoldedWord {
    WordKey key;
    std::uint32_t length;       // bytes
    bool is_single_character;
    bool is_unspaced;           // of a script without spaces
};

// Any word; `folded` is scratch.
FoldedWord fold_word_slowly(std::span<const unsigned char> word, std::vector<unsigned char>& folded);

// The key of a word as the scanner finds it. ASCII words of at most 16 bytes, nearly all of English, never leave registers.
// Nothing at or past `end_of_text` is read.
inline FoldedWord fold_word(const unsigned char* word, std::size_t length, const unsigned char* end_of_text,
                            std::vector<unsigned char>& folded) {
    constexpr std::uint64_t kHighBits = 0x8080808080808080ull;
    constexpr std::uint64_t kCase = 0x2020202020202020ull;  // every ASCII byte of a word but a capital and '_' has this bit
    if (length <= 16) [[likely]] {
        std::uint64_t half[2] = {0, 0};
        if (end_of_text - word >= 16) [[likely]] {
            std::memcpy(half, word, 16);
        } else {
            std::memcpy(half, word, length);
        }
        const std::uint64_t low_mask = kByteMask[length < 8 ? length : 8];
        const std::uint64_t high_mask = kByteMask[length < 8 ? 0 : length - 8];
        if (!((half[0] & low_mask & kHighBits) | (half[1] & high_mask & kHighBits))) [[likely]] {
            return {{(half[0] | kCase) & low_mask, (half[1] | kCase) & high_mask}, static_cast<std::uint32_t>(length), length == 1,
                    false};
        }
    }
    return fold_word_slowly({word, length}, folded);
}

// Inflections fold together: drops a final 's, then one of ing ed es ly s e, when at least four bytes remain.
// The key and length are those of a folded word of at most 16 bytes; longer words keep theirs.
WordKey stem(const WordKey& key, std::uint32_t length) noexcept;

// Key of a word given as plain lower-case ASCII of at most 16 bytes, for tables built at compile time.
constexpr WordKey ascii_key(std::string_view word) {
    WordKey key{0, 0};
    for (std::size_t i = 0; i < word.size(); ++i) {
        // The same bit as in fold_word: only '_' is changed by it, and no table holds one.
        const auto byte = static_cast<std::uint64_t>(static_cast<unsigned char>(word[i]) | 0x20u);
        (i < 8 ? key.low : key.high) |= byte << (8 * (i % 8));
    }
    return key;
}

}  // namespace hsca
