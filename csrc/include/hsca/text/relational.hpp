// relational.hpp -- Layer 1: how tightly the words of a text hang together. docs/formulas.md has the reasons.
//
// A block of n distinct sentences has T content tokens. A word that returns in k further sentences has rate
// l = k / (n - 1); g are the gaps, in sentences, between its appearances.
//   breadth     B = (1/2 + sum_w (1 - l) / k) / T
//   clustering  M = sum_returns [ -ln(1 - exp(-(g - 1/2) max(l, l0))) - 1 ] / T
//   carriage    C = (1 + content tokens right after a function word) / (T + 2)
//   continuity  P = sum over persons and tenses of (neighbours that agree - neighbours expected to agree) / sqrt(n)
//   strength    G = Z / (1 + Z),  ln Z = s (ln K + a ln B + c ln C + (m M - h) ln n + p P)
//   tie         r_w = (1 - l) / sqrt(k), 0 for a word that does not return
//   sentence    x = mean over pairs (u, v) of content words less than `window` apart of 1 - (1 - r_u)(1 - r_v)
//               score = G (1 - d + d x / (x + x0))
// Text: mean over its sentences. All sums are float64 in text order; empty text scores 0.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <utility>
#include <vector>

#include "hsca/text/scan.hpp"
#include "hsca/text/sentence_words.hpp"
#include "hsca/text/words.hpp"

namespace hsca {

struct RelationalConfig {
    std::size_t window = 5;
    double breadth_weight = 2.75;
    double carriage_weight = 7.58;
    double cluster_weight = 13.3;
    double length_weight = 3.31;
    double continuity_weight = 0.985;
    double log_scale = 17.7;
    double softness = 0.8;
    double min_rate = 1.0 / 40.0;
    double own_share = 0.4;
    double own_half = 0.2;
    double short_score = 0.02;
    double min_listed = 0.15;
    double neutral_carriage = 0.6;
};

struct BlockFactors {
    std::int64_t n_sentences;
    std::int64_t n_tokens;
    double breadth, clustering, carriage, continuity, strength;
};

// The whole weight map of a text, for those who ask for it.
struct RelationalDetail {
    std::vector<double> sentence_scores;        // one a sentence
    std::vector<std::int64_t> token_words;      // for each content token: the number of the word in the text,
    std::vector<std::int64_t> token_sentences;  // of its sentence,
    std::vector<std::int64_t> token_stems;      // and of its stem, in order of first appearance
    std::vector<double> stem_scores;            // greatest G r_w over the blocks
    std::vector<BlockFactors> blocks;

    std::size_t stem_of(const WordKey& key);

  private:
    std::map<std::pair<std::uint64_t, std::uint64_t>, std::size_t> numbers_;
};

// Sentences of one text, then finish(). Reusable: begin() starts the next text.
class RelationalLayer {
  public:
    static constexpr std::size_t kBlock = 64;  // a text's last block has up to kBlock / 2 more

    explicit RelationalLayer(const RelationalConfig& config) : config_(config) {}

    void begin(RelationalDetail* detail = nullptr);

    void add_sentence(std::span<const SentenceWord> words);

    struct Result {
        double score;
        bool is_short;  // fewer than three distinct sentences: the score is flat
    };
    Result finish();

    std::size_t n_words() const noexcept { return word_number_; }

  private:
    struct Token {
        std::uint32_t id;
        bool is_carried;
    };
    struct Sentence {  // a distinct one
        std::size_t token_end;
        std::uint32_t n_listed;
        std::uint32_t n_unspaced;
        std::uint32_t multiplicity;
        std::uint32_t continuities;
        std::uint64_t bag[2];
    };
    // Stamps only grow, so that what an earlier text left behind is never taken for this one's.
    struct WordState {
        WordKey key;
        std::uint64_t hash;
        std::uint64_t bag_stamp;    // sentence whose bag holds it
        std::uint64_t block_stamp;  // block the next fields are about
        std::uint32_t last_sentence;
        std::uint32_t returns;
        double tie;
        bool is_unspaced;
        bool is_profile;  // taken for a function word by its frequency
    };
    struct Return {
        std::uint32_t id;
        std::uint32_t gap;
    };

    std::uint32_t id_of(const WordKey& stem, bool is_unspaced) noexcept;
    void place(std::uint32_t id) noexcept;
    void make_room(std::size_t n_words);
    void clear_words();
    void forget_old_words();
    void judge(std::size_t n_sentences);
    void mark_profile(std::size_t n_sentences);
    BlockFactors measure(std::size_t n_sentences, bool is_unspaced);
    double continuity(std::size_t n_sentences) const noexcept;
    double own_mesh(std::size_t begin, std::size_t end) const noexcept;

    RelationalConfig config_;
    RelationalDetail* detail_ = nullptr;

    std::array<std::uint32_t, kMaxSentenceWords + 1> content_;  // the sentence's content words, kCarried marked
    std::size_t word_number_ = 0;                               // of the sentence's first word in the text

    // the vocabulary: an open table of id + 1, 0 for a free slot
    std::vector<std::uint32_t> table_;
    std::vector<WordState> states_;  // the first n_words_ are in use
    std::uint32_t n_words_ = 0;

    // distinct sentences not yet judged
    std::vector<Token> tokens_;
    std::vector<Sentence> pending_;
    std::uint64_t sentence_stamp_ = 0;
    std::uint64_t block_stamp_ = 0;
    std::vector<Return> returns_;
    std::vector<double> rate_roots_;

    double score_sum_ = 0.0;
    std::uint64_t n_live_ = 0;
    std::size_t n_judged_ = 0;

    // for the detail: distinct sentence of each sentence, and the scores of the judged ones
    std::vector<std::size_t> where_;
    std::vector<double> distinct_scores_;
};

}  // namespace hsca
