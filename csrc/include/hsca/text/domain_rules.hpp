// domain_rules.hpp -- Layer 2 by cue lists instead of the trained model: score_t = (weight of the cues of tag t found)
// / sqrt(n) in a text of n words, and the text has tag t when that reaches the tag's threshold. Scores are not
// probabilities; a text without words has none.
#pragma once

#include <cstddef>
#include <span>

#include "hsca/text/domain.hpp"
#include "hsca/text/nuance.hpp"

namespace hsca {

struct DomainRule {
    std::size_t category;  // of the lexicon
    std::size_t tag;
    double threshold;
};

// `counts` are those of the lexicon's categories. Rules of unknown categories or tags are passed over.
DomainResult domains_by_rules(std::span<const DomainRule> rules, std::span<const CategoryCount> counts,
                              std::size_t n_words) noexcept;

}  // namespace hsca
