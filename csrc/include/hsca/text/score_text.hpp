// score_text.hpp -- the scores of one text in one pass, and of a batch of texts on several threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hsca/parallel.hpp"
#include "hsca/text/byte_class.hpp"
#include "hsca/text/lexicon.hpp"
#include "hsca/text/relational.hpp"

namespace hsca {

struct ScoringConfig {
    RelationalConfig relational;
    const Lexicon* lexicon = &plain_lexicon();
    SimdLevel simd = SimdLevel::baseline;
};

struct TextScores {
    double layer1;
    std::int32_t n_sentences;
    std::int32_t n_words;
    bool is_short;
};

// Scratch memory of one worker. Not for use by two threads at a time.
class TextScorer {
  public:
    explicit TextScorer(const ScoringConfig& config);

    // Gives up and returns false when `stop` asks for it.
    bool score(std::string_view text, Stop& stop, TextScores& out, RelationalDetail* detail = nullptr);

  private:
    ClassifyBytes classify_;
    SentenceWords words_;
    RelationalLayer relational_;
};

// Where a batch's results go: one element a text.
struct ScoreColumns {
    std::span<double> layer1_score;
    std::span<std::int32_t> n_sentences;
    std::span<std::int32_t> n_words;
    std::span<std::uint8_t> is_short;
};

// Throws std::invalid_argument when a column's size differs from the number of texts. Returns false when stopped by
// `poll`.
bool score_texts(std::span<const std::string_view> texts, const ScoringConfig& config, std::size_t threads,
                 Stop::Poll poll, const ScoreColumns& out);

}  // namespace hsca
