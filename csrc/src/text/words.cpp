#include "hsca/text/words.hpp"

#include <algorithm>

#include "hsca/text/unicode.hpp"

namespace hsca {

namespace {

WordKey hash_long_word(std::span<const unsigned char> folded) noexcept {
    std::uint64_t a = folded.size(), b = ~a;
    for (std::size_t i = 0; i < folded.size(); i += 8) {
        std::uint64_t part = 0;
        std::memcpy(&part, folded.data() + i, std::min<std::size_t>(8, folded.size() - i));
        a = mix(a * 0x9E3779B97F4A7C15ull + part);
        b = mix((b ^ part) * 0xC2B2AE3D27D4EB4Full);
    }
    return {a, b | 0xFFull << 56};
}

}  // namespace

FoldedWord fold_word_slowly(std::span<const unsigned char> word, std::vector<unsigned char>& folded) {
    folded.clear();
    const unsigned char* const end = word.data() + word.size();
    bool is_unspaced = false;
    for (const unsigned char* p = word.data(); p < end;) {
        const CodePoint c = decode_utf8(p, end);
        if (p == word.data()) is_unspaced = char_class(c.value) == CharClass::unspaced;
        unsigned char bytes[7];
        const std::size_t n = fold_char(c.value, bytes);
        // The quick path sets this bit in '_' as well; a word must have one key whichever path it takes.
        if (c.value == '_') bytes[0] = '_' | 0x20;
        folded.insert(folded.end(), bytes, bytes + n);
        p += c.length;
    }
    const auto n_characters =
        std::count_if(folded.begin(), folded.end(), [](unsigned char c) { return (c & 0xC0) != 0x80; });
    FoldedWord result{{0, 0},
                      static_cast<std::uint32_t>(std::min<std::size_t>(folded.size(), 0xFFFFFFFFu)),
                      n_characters == 1,
                      is_unspaced};
    if (folded.size() > 16) {
        result.key = hash_long_word(folded);
        return result;
    }
    std::uint64_t half[2] = {0, 0};
    if (!folded.empty()) std::memcpy(half, folded.data(), folded.size());
    result.key = {half[0], half[1]};
    return result;
}

WordKey folded_key(std::string_view word) {
    std::vector<unsigned char> folded;
    return fold_word_slowly({reinterpret_cast<const unsigned char*>(word.data()), word.size()}, folded).key;
}

}  // namespace hsca
