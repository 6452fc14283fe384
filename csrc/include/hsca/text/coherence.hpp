// coherence.hpp -- Layer 2: does a text read as intended text? docs/formulas.md has the reasons, tools/fit_coherence.py
// the fit.
//
// Every word has a class: its own if it is listed (order_words.hpp), else that of its shape (its last two letters, or
// a capital inside the sentence). Two more classes are a sentence's border and a pause, a gap with marks in it.
//   order    mean over neighbouring classes of ln(how much likelier in that order than by chance)
//   letters  mean over neighbouring letters of content words of ln(how much likelier in words than in noise); not held
//            against a text whose words have letters outside ASCII: those are not English
//   quality  weighted sum of length, pronouns, punctuation, clauses, edges, extent
//   score    quality x known x letters x order, at most 1
// A sentence with the words of one of the last sixteen counted ones is not counted again. All counts are integers; the
// parts are computed from them once, so the order of a text's sentences matters only to its pronouns. A text without
// words scores 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "hsca/text/sentence_words.hpp"

namespace hsca {

// The score and its parts, each in [0, 1].
struct CoherenceParts {
    double length, pronouns, punctuation, clauses, edges, extent, known, letters, order, score;
};

struct NamedConstant {
    std::string_view name;
    double value;
};

// What was fitted, for those who compute the same by other means.
struct CoherenceTables {
    std::span<const std::uint8_t> properties;  // of each class
    std::span<const std::uint8_t> endings;     // 28 x 28
    std::span<const std::int8_t> letters;      // 27 x 27, in thirty-seconds
    std::span<const std::int8_t> order;        // classes x classes, in sixteenths
    std::span<const NamedConstant> constants;
    std::uint32_t pause, title;  // classes
};
CoherenceTables coherence_tables() noexcept;

// Sentences of one text, then finish(). Reusable: begin() starts the next text.
class CoherenceLayer {
  public:
    CoherenceLayer() noexcept { begin(); }

    void begin() noexcept;

    // `words` are those of the sentence text[begin, end), `places` where they stand.
    void add_sentence(const unsigned char* text, std::size_t begin, std::size_t end,
                      std::span<const SentenceWord> words, std::span<const WordPlace> places) noexcept;

    CoherenceParts finish() const noexcept;

    // Share of the words that are listed English ones, less those of other languages; 0 without words.
    double english_share() const noexcept;

  private:
    struct Counts {
        std::int64_t sentences = 0;
        std::int64_t words = 0;
        std::int64_t unspaced = 0;     // words of scripts without spaces, two of which make one
        std::int64_t ascii_words = 0;  // by their first byte
        std::int64_t glue = 0;         // ASCII words that are listed or have at most three letters
        std::int64_t listed = 0;       // words with a class of their own
        std::int64_t foreign = 0;      // function words of more than one byte without one
        std::int64_t pronouns = 0;
        std::int64_t resolved = 0;
        std::int64_t clause_words = 0;
        std::int64_t pauses = 0;
        std::int64_t marks = 0;
        std::int64_t capitals = 0;  // sentences that do not begin in lower case
        std::int64_t stops = 0;     // sentences that end in a stop
        std::int64_t pairs = 0;
        std::int64_t order = 0;     // sixteenths
        std::int64_t accented = 0;  // words of content with a letter outside ASCII
        std::int64_t letter_pairs = 0;
        std::int64_t letters = 0;  // thirty-seconds
    };

    bool is_repeated(std::uint64_t hash) noexcept;
    void add_unusual(const unsigned char* text, std::span<const SentenceWord> words,
                     std::span<const WordPlace> places) noexcept;

    static constexpr std::size_t kMemory = 16;

    Counts counts_;
    std::array<std::uint64_t, kMemory> recent_;  // hashes of counted sentences, as a ring
    bool antecedents_[2];                        // did the last two sentences hold one
};

}  // namespace hsca
