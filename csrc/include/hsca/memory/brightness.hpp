// brightness.hpp -- attention brightens the tokens of a conversation, its absence dims them.
//
//   threshold = (1 - s) / (n - 1)   n tokens in the context; s the attention of the first one, or the largest
//   b + floor(a / threshold)        where a > threshold, at most `most`
//   b - 1                           elsewhere, at least -kBrightnessLimit
//
// Tokens stand in the order of their positions, a chunk's beside each other; chunks are live or not as a whole, and
// attention is that of live tokens in order, after `prefix` tokens that are not kept here. Computed in float64. A
// context of fewer than two tokens, or a threshold that is not above 0, changes nothing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hsca {

inline constexpr std::int32_t kBrightnessLimit = 1'000'000'000;  // two of them add up to less than 2^31

enum class Sink { first, largest };
enum class StepOutcome { scored, unchanged, refused };

struct BrightnessRule {
    Sink sink = Sink::first;  // the first token is not scored when it is the sink
    std::int32_t most = kBrightnessLimit;
};

// Chunk c holds tokens [offsets[c], offsets[c + 1]).
struct ConversationChunks {
    std::span<const std::int64_t> offsets;
    std::span<const std::uint8_t> live;
};

// Scores the live chunks before `n_scored` and writes the largest brightness of each to `peaks`. T is float or double.
// Brightness is within +-kBrightnessLimit and at most rule.most, before and after.
// Refuses, and writes nothing, when any attention is negative or not finite. Throws std::invalid_argument when sizes do
// not fit each other.
template <class T>
StepOutcome score_step(std::span<const T> attention, std::size_t prefix, const ConversationChunks& chunks,
                       std::size_t n_scored, const BrightnessRule& rule, std::span<std::int32_t> brightness,
                       std::span<std::int32_t> peaks);

// Throws std::invalid_argument unless offsets begin with 0, never fall, and end at `n_tokens`.
void check_chunks(const ConversationChunks& chunks, std::size_t n_tokens);

}  // namespace hsca
