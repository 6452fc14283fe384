// sentiment.hpp -- how positive or negative a text is: VADER's compound score (Hutto & Gilbert 2014).
//
// Tokens are what white space separates, without ASCII punctuation at their ends unless at most two characters remain.
// Emoji are read as their descriptions. A token of the lexicon has a valence v, changed in this order:
//   "no" before a word of the lexicon: v = 0;  after "no" (also with one word or "x or"/"x nor" between): v = -0.74 l
//   all in capitals where other tokens are not: v moves 0.733 away from 0
//   each of the three tokens before, nearest first, unless it is of the lexicon itself:
//     a booster adds +-0.293 (in capitals 0.733 more), times 1, 0.95, 0.9 by distance;
//     a negation multiplies by -0.74 ("never so", "never this": by 1.25; "without doubt": not at all)
//     the third also looks for idioms, which have a valence of their own, and for "kind of" and its like: -0.293
//   after "least", unless "at least" or "very least": times -0.74
// Where a "but" is, each value in text order halves (before it) or raises by half (after it) the first value equal to
// it.
//   s = sum of the values, moved away from 0 by 0.292 a '!' (at most four) and 0.18 a '?' (of two or three; 0.96 of
//   more) compound = s / sqrt(s^2 + 15), in [-1, 1]; 0 for an empty text
// The order of the operations is the published program's, so the numbers are too, before its last rounding.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hsca {

// A token that bears on the score: its bytes in the text and its part of the sum. The words of an emoji's description
// have the emoji's bytes.
struct SentimentToken {
    std::size_t begin;
    std::size_t end;
    double valence;
};

class SentimentLexicon;  // the tables behind every scorer

// Scratch memory of one worker. Not for use by two threads at a time.
class SentimentScorer {
  public:
    SentimentScorer();

    double compound(std::string_view text) { return score(text, nullptr); }

    // The same number, and the tokens that made it in text order.
    double explain(std::string_view text, std::vector<SentimentToken>& out) { return score(text, &out); }

  private:
    struct Token {
        std::size_t begin;
        std::uint32_t length;  // 0: there is no such token
        std::uint32_t hash;
    };
    struct Entry;
    friend class SentimentLexicon;

    // Tokens wait here until the two after them are known; those of a sentence fit.
    static constexpr std::size_t kLookBack = 3, kLookAhead = 2, kMostInWindow = 33, kTokens = 512;

    // A character replaced by other bytes.
    struct Replacement {
        std::size_t begin, end;                    // in expanded_
        std::size_t original_begin, original_end;  // in the text
    };

    double score(std::string_view text, std::vector<SentimentToken>* out);
    void begin(const unsigned char* text, std::size_t size);
    void scan();
    bool find_end_of_long_token(std::size_t& at) const noexcept;
    void add_long_token(std::size_t begin, std::size_t end);
    void judge(bool is_end);
    double valence_of(std::size_t i, const Entry& word);
    const Entry& entry_of(const Token& token) const noexcept;
    bool is_negation(const Entry& entry, const Token& token) const noexcept;
    bool is_upper(const Token& token) const noexcept;
    bool is_emphasis(const Token& token);
    bool has_other_case() const noexcept;
    void expand(std::size_t from);
    void weigh_around_but();
    void weigh_many_around_but();
    double emphasis() const noexcept;
    void explain_tokens(std::vector<SentimentToken>& out) const;

    const SentimentLexicon& lexicon_;
    const unsigned char* text_ = nullptr;  // the text, or what it was expanded to
    std::size_t size_ = 0;

    std::array<Token, kLookBack + kTokens> tokens_;
    std::size_t n_tokens_ = 0;
    std::array<std::uint32_t, kTokens> candidates_;  // tokens that the filter let through
    std::size_t n_candidates_ = 0;

    enum class Answer : std::uint8_t { unknown, no, yes };
    Answer has_other_case_ = Answer::unknown;

    std::vector<double> values_;  // those that are not 0, in text order
    std::vector<Token> places_;   // of the values
    static constexpr std::size_t kNoBut = ~std::size_t{0};
    std::size_t but_at_ = kNoBut;  // number of values before the first "but"

    // for "but" among many values
    struct ValueKind {
        double value;
        std::size_t heap;            // places that hold it
        std::size_t halved, raised;  // kinds that half of it and one and a half times it are
    };
    std::unordered_map<std::uint64_t, std::size_t> numbers_;  // of the kinds, by a value's bits
    std::vector<ValueKind> kinds_;
    std::vector<std::size_t> kind_of_, left_, right_;

    std::vector<unsigned char> expanded_;
    std::vector<Replacement> replacements_;
};

// Throws std::invalid_argument when the sizes differ.
void sentiment_compounds(std::span<const std::string_view> texts, std::span<double> out);

}  // namespace hsca
