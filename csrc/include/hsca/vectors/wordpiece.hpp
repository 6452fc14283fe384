// wordpiece.hpp -- BERT's uncased WordPiece tokenizer over a vocabulary, id for id what the `tokenizers` library gives.
//
// A character's normal form (cleaned, decomposed, without accents, lower case) does not depend on its neighbours, so it
// comes from one generated table. Words are looked up whole; one that is not in the vocabulary is cut into its longest
// pieces from the left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hsca/parallel.hpp"

namespace hsca {

class WordPiece {
  public:
    // Tokens in the order of their ids, pieces inside of words with "##" before them. Throws std::invalid_argument when
    // one is given twice or [UNK] is missing.
    explicit WordPiece(std::span<const std::string_view> tokens);

    std::size_t size() const noexcept { return entries_.size(); }

    // Appends the ids of `text`'s tokens, without [CLS] and [SEP]. False if stopped.
    bool encode(std::string_view text, std::vector<std::int32_t>& ids, Stop& stop) const;

  private:
    struct Word;
    struct Entry {
        std::uint32_t begin, length;
        bool continues;
    };
    struct Slot {
        std::uint32_t tag;
        std::int32_t id;  // negative: free
    };

    std::int32_t find(std::uint64_t hash, std::string_view text, bool continues) const noexcept;
    void add_word(Word& word, std::vector<std::int32_t>& ids) const;
    std::size_t add_special(std::string_view text, Word& word, std::vector<std::int32_t>& ids) const;

    std::string text_;
    std::vector<Entry> entries_;
    std::vector<Slot> slots_;
    std::size_t longest_ = 0;  // bytes of the longest token
    std::int32_t unknown_ = -1;
    std::vector<std::pair<std::string, std::int32_t>> special_;
};

}  // namespace hsca
