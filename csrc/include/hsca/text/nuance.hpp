// nuance.hpp -- Layer 3: what the cues of the lexicon and the sentiment of the sentences say about a text.
//
// A sentence shows a category when the weights of its cues add up to the category's threshold. A text has the
// category's flag when at least `share` of its sentences show it, and one at least. Its tone is positive, negative or
// neutral by the mean of its sentences' compounds (sentiment.hpp), with the usual bounds of +-0.05.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hsca/text/lexicon.hpp"

namespace hsca {

struct NuanceCategory {
    std::int32_t threshold = 1000;  // thousandths
    double share = 0.0;
    std::uint32_t flags = 0;  // the bits of NuanceFlag that it sets; 0 for a category that is only counted
};

struct NuanceConfig {
    std::vector<NuanceCategory> categories;  // as many as the lexicon has
    std::uint32_t positive_flag = 0;
    std::uint32_t negative_flag = 0;
    std::uint32_t neutral_flag = 0;
    double tone_bound = 0.05;
};

struct CategoryCount {
    std::int64_t cues;
    std::int64_t weight;     // thousandths
    std::int64_t sentences;  // that show the category
};

// A cue where it counted.
struct CueMatch {
    std::size_t category;
    std::size_t begin;
    std::size_t end;
    std::int32_t weight;
};

// Is there a question mark after the last word of a sentence?
bool is_question(const unsigned char* text, std::size_t last_word_end, std::size_t end) noexcept;

class NuanceLayer {
  public:
    // Throws std::invalid_argument when the categories are not the lexicon's.
    NuanceLayer(const Lexicon& lexicon, const NuanceConfig& config);

    void begin(std::vector<CueMatch>* matches = nullptr) noexcept;

    void add_sentence(const unsigned char* text, std::size_t end, std::span<const SentenceWord> words,
                      std::span<const WordPlace> places);

    // The sentiment of a sentence, or of a text without any.
    void add_compound(double compound) noexcept { compound_sum_ += compound; }

    struct Result {
        std::uint32_t flags;
        double sentiment;  // mean compound
    };
    Result finish() const noexcept;

    std::span<const CategoryCount> counts() const noexcept { return {counts_.data(), lexicon_.n_categories()}; }

  private:
    const Lexicon& lexicon_;
    const NuanceConfig& config_;
    std::vector<CueMatch>* matches_ = nullptr;
    std::array<CategoryCount, Lexicon::kMaxCategories> counts_{};
    std::array<std::int64_t, Lexicon::kMaxCategories> in_sentence_{};
    std::int64_t n_sentences_ = 0;
    double compound_sum_ = 0.0;
};

}  // namespace hsca
