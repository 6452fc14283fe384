// pruning.hpp -- which chunks leave a conversation that is over its budget of live tokens.
//
// While there are more live tokens than the budget: the chunk with the lowest peak goes, the oldest of equals. Exempt
// chunks stay, and so do the last `keep` that could go. With `anchors` the first chunk of a message stays while others
// of the message are live; then it goes together with the first chunk of its partner (the question or the answer), once
// that one is alone as well. A partner's first chunk that is exempt holds both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hsca/memory/brightness.hpp"

namespace hsca {

struct PruneRule {
    bool anchors = false;
    std::size_t keep = 0;
};

struct PruneCandidates {
    ConversationChunks chunks;
    std::span<const std::uint8_t> exempt;
    std::span<const std::int32_t> peaks;
    std::span<const std::int64_t> message_of;   // of every chunk
    std::span<const std::int64_t> first_chunk;  // of every message
    std::span<const std::int64_t> partner;      // of every message, -1 for none; partners name each other
};

// Numbers of the chunks that go, in order. Throws std::invalid_argument when sizes or numbers do not fit each other.
std::vector<std::int64_t> plan_prune(const PruneCandidates& candidates, std::size_t budget, const PruneRule& rule);

}  // namespace hsca
