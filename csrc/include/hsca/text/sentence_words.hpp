// sentence_words.hpp -- the words of one sentence, folded and looked up together.
// The scanner only notes where words are; keys and tables follow for the whole sentence in one tight loop, in which
// many words are under way at a time. Every layer reads the result.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hsca/text/function_words.hpp"
#include "hsca/text/scan.hpp"
#include "hsca/text/words.hpp"

namespace hsca {

struct SentenceWord {
    static constexpr std::uint32_t kFunction = kIsFunctionWord;        // listed, or a single character
    static constexpr std::uint32_t kContinuity = kIsFunctionWord - 1;  // bits of Continuity
    static constexpr std::uint32_t kUnspaced = kIsFunctionWord << 1;   // of a script without spaces

    WordKey key;
    std::uint32_t length;  // of the folded word in bytes
    std::uint32_t facts;
};

class SentenceWords {
  public:
    void begin_text(const unsigned char* text, std::size_t size) noexcept {
        text_ = text;
        end_of_text_ = text + size;
        n_ = 0;
    }

    void add(std::size_t begin, std::size_t end) noexcept { places_[n_++] = {begin, end - begin}; }

    // Folds what was added since the last call; the result is good until the next one.
    std::span<const SentenceWord> fold();

  private:
    struct Place {
        std::size_t begin;
        std::size_t length;
    };
    const unsigned char* text_ = nullptr;
    const unsigned char* end_of_text_ = nullptr;
    std::size_t n_ = 0;
    std::array<Place, kMaxSentenceWords> places_;
    std::array<SentenceWord, kMaxSentenceWords> words_;
    std::vector<unsigned char> folded_;
};

}  // namespace hsca
