#include "hsca/text/sentence_words.hpp"

#include <algorithm>

#include "hsca/text/lexicon.hpp"

namespace hsca {

std::span<const SentenceWord> SentenceWords::fold() {
    const WordTable& table = lexicon_.words();
    const std::size_t n = n_;
    n_ = 0;
    n_folded_ = n;
    for (std::size_t i = 0; i < n; ++i) {
        const unsigned char* begin = text_ + places_[i].begin;
        std::size_t length = places_[i].length;
        std::uint32_t facts;
        WordKey key;
        if (fold_word_quickly(begin, length, end_of_text_, key)) [[likely]] {
            facts = length == 1 ? SentenceWord::kFunction : 0;
        } else {
            const FoldedWord folded = fold_word_slowly({begin, length}, folded_);
            key = folded.key;
            length = std::min<std::size_t>(folded.length, 0xFFFF);
            facts = (folded.is_single_character ? SentenceWord::kFunction : 0) |
                    (folded.is_unspaced ? SentenceWord::kUnspaced : 0) | (*begin < 0x80 ? 0 : SentenceWord::kNotAscii);
        }
        const std::uint64_t hash = hash_key(key);
        const std::uint64_t listed = table.find(key, hash);
        words_[i] = {key, hash, static_cast<std::uint32_t>(listed) | facts, static_cast<std::uint16_t>(length),
                     static_cast<std::uint16_t>(listed >> 32)};
    }
    return {words_.data(), n};
}

}  // namespace hsca
