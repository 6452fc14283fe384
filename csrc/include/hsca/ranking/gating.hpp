// gating.hpp -- G, the gating scalar: is a user's turn worth keeping?
//
//   G     = (1 - T) Gconv + T Gtech                     in [0, 1] when each triple of weights sums to 1
//   Gconv = w1 H + w2 R + w3 Dnl                        conversational: novelty, repetition, detail
//   Gtech = w1 P + w2 A + w3 Dtech                      technical: specificity, actionability, structure
//   H     = 1 - mean of the memory scores, 1 without any
//   R     = F (1 - S)    F = min(#turn scores >= 0.80 / 5, 1)    S = min(#memory scores >= 0.85 / 3, 1)
//   P     = min(sum of weight * matches / max(L / 100, 1), 1)    L = max(floor(code points / 4), 1)
//   T, Dnl, A, Dtech: sums of the weights of the patterns present, T over its norm, each at most 1
//
// Sums run in the order of the tables in gating.cpp: at cold start Gconv is exactly the threshold, and must stay so.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "hsca/parallel.hpp"
#include "hsca/ranking/gating_patterns.hpp"

namespace hsca {

struct GatingTerms {
    double conversational_weights[3] = {0.35, 0.40, 0.25};
    double technical_weights[3] = {0.40, 0.35, 0.25};
    double technical_norm = 1.5;
    double repeat_threshold = 0.80;
    double repeat_cap = 5;
    double saturation_threshold = 0.85;
    double saturation_cap = 3;
    bool strict = false;
};

struct GatingSignals {
    double score;
    double technical;
    double conversational_score;
    double technical_score;
    double novelty;
    double repetition;
    double frequency;
    double saturation;
    double detail;
    double specificity;
    double actionability;
    double structure;
};

// Scores of the hits of all texts; those of text i are values[offsets[i], offsets[i + 1]). Empty offsets: no hits.
struct HitScores {
    std::span<const double> values;
    std::span<const std::int64_t> offsets;
};

// Hit scores are clamped to [0, 1].
GatingSignals gating_signals(std::string_view text, std::span<const double> memory_scores,
                             std::span<const double> turn_scores, const GatingTerms& terms, PatternScanner& scanner);

// Throws std::invalid_argument when sizes differ. False when stopped by `poll`.
bool gating_signals(std::span<const std::string_view> texts, const HitScores& memory, const HitScores& turns,
                    const GatingTerms& terms, std::size_t threads, Stop::Poll poll, std::span<GatingSignals> out);

}  // namespace hsca
