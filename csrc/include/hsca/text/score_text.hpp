// score_text.hpp -- the scores of one text in one pass, and of a batch of texts on several threads.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "hsca/parallel.hpp"
#include "hsca/text/byte_class.hpp"
#include "hsca/text/coherence.hpp"
#include "hsca/text/domain.hpp"
#include "hsca/text/domain_rules.hpp"
#include "hsca/text/lexicon.hpp"
#include "hsca/text/nuance.hpp"
#include "hsca/text/relational.hpp"
#include "hsca/text/sentiment.hpp"

namespace hsca {

// What the layers work by. The lexicon and the model are shared by all workers and outlive them.
struct ScoringConfig {
    RelationalConfig relational;
    const Lexicon* lexicon = &plain_lexicon();
    NuanceConfig nuance;
    const DomainModel* domain_model = nullptr;  // none: domains come from the rules
    std::vector<DomainRule> domain_rules;
    bool layer1_only = false;  // for benchmarks
    SimdLevel simd = SimdLevel::baseline;
};

struct TextScores {
    double layer1;
    double coherence;
    double sentiment;
    std::uint32_t nuance_bits;
    std::uint16_t domain_bits;
    std::int32_t n_sentences;
    std::int32_t n_words;
    bool is_short;
};

// Everything the pass knows of one text, for those who ask for it.
struct TextDetail {
    RelationalDetail relational;
    CoherenceParts coherence;
    std::array<double, kDomains> domain_scores;  // of the model, or of the rules where there is none
    std::array<double, kDomains> domain_sums;    // of the model
    std::vector<CueMatch> cues;
    std::vector<CategoryCount> categories;
    std::vector<SentimentToken> sentiment_tokens;
    std::vector<double> sentence_compounds;
};

// Scratch memory of one worker. Not for use by two threads at a time.
class TextScorer {
  public:
    explicit TextScorer(const ScoringConfig& config);
    TextScorer(const TextScorer&) = delete;  // the layers refer to its configuration

    // Gives up and returns false when `stop` asks for it.
    bool score(std::string_view text, Stop& stop, TextScores& out, TextDetail* detail = nullptr);

  private:
    struct Pass;

    const ScoringConfig config_;
    ClassifyBytes classify_;
    SentenceWords words_;
    RelationalLayer relational_;
    CoherenceLayer coherence_;
    std::optional<DomainLayer> domain_;  // none: by rules
    NuanceLayer nuance_;
    SentimentScorer sentiment_;
};

// Where a batch's results go: one element a text.
struct ScoreColumns {
    std::span<double> layer1_score;
    std::span<double> coherence_score;
    std::span<double> sentiment_score;
    std::span<std::uint16_t> domain_bits;
    std::span<std::uint32_t> nuance_bits;
    std::span<std::int32_t> n_sentences;
    std::span<std::int32_t> n_words;
    std::span<std::uint8_t> is_short;
};

// Throws std::invalid_argument when a column's size differs from the number of texts. Returns false when stopped by
// `poll`.
bool score_texts(std::span<const std::string_view> texts, const ScoringConfig& config, std::size_t threads,
                 Stop::Poll poll, const ScoreColumns& out);

}  // namespace hsca
