// features.hpp -- a text as a row of hashed counts, for small models that read features instead of words.
//
// "hashed-ngrams-v1": every occurrence of one of these adds 1 to a bin of the row,
//   word    a folded word,
//   pair    two neighbouring words of a sentence; the first has the sentence's start for a neighbour,
//   piece   four neighbouring bytes of " word ", for folded words of at most 16 bytes,
//   mark    an ASCII mark (neither letter, digit, space nor control) outside words.
// With c the counts and h a 64-bit hash of the kind and of what was found:
//   bin = floor((h / 2^32) dim / 2^32),   row[i] = sqrt(c[i] / sum c)
// So a row has length 1, and a long text's frequent words do not drown the rest; a text without any of these gives
// zeros. Counts are integers, and division and root are correctly rounded: the same bits everywhere.
#pragma once

#include <cstddef>
#include <span>
#include <string_view>

namespace hsca {

inline constexpr std::size_t kMaxFeatures = std::size_t{1} << 20;

// Fills `row`, whose size is the number of bins. Throws std::invalid_argument unless that is 1 to kMaxFeatures.
void hashed_features(std::string_view text, std::span<float> row);

}  // namespace hsca
