// near_copies.hpp -- texts that are nearly an earlier one: Jaccard similarity of their sets of character n-grams.
//
// Texts are taken in order. One that reaches the threshold with an earlier text that stays is a copy of the first such;
// all others stay. A text shorter than n is one n-gram by itself, padded with zeros. Up to n = 3 an n-gram is its code
// points, beyond that a 64-bit hash of them.
//
// Two texts are compared only if they can be alike: the counts of their n-grams' hash values in a few buckets bound
// what they share from above.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hsca {

// For each text the row it is a copy of, or -1, and their similarity. Throws std::invalid_argument when sizes differ.
void near_copies(std::span<const std::string_view> texts, std::size_t n, double threshold,
                 std::span<std::int64_t> first, std::span<double> similarity);

}  // namespace hsca
