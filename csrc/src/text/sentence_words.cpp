#include "hsca/text/sentence_words.hpp"

namespace hsca {

std::span<const SentenceWord> SentenceWords::fold() {
    const std::size_t n = n_;
    n_ = 0;
    for (std::size_t i = 0; i < n; ++i) {
        const unsigned char* begin = text_ + places_[i].begin;
        const std::size_t length = places_[i].length;
        SentenceWord& word = words_[i];
        WordKey key;
        if (fold_word_quickly(begin, length, end_of_text_, key)) [[likely]] {
            word = {key, static_cast<std::uint32_t>(length),
                    kFunctionWords[key] | (length == 1 ? SentenceWord::kFunction : 0)};
        } else {
            const FoldedWord folded = fold_word_slowly({begin, length}, folded_);
            word = {folded.key, folded.length,
                    kFunctionWords[folded.key] | (folded.is_single_character ? SentenceWord::kFunction : 0) |
                        (folded.is_unspaced ? SentenceWord::kUnspaced : 0)};
        }
    }
    return {words_.data(), n};
}

}  // namespace hsca
