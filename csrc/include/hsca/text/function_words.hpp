// function_words.hpp -- words that carry grammar rather than topic: articles, pronouns, prepositions, auxiliaries.
// One list for the Latin script (English whole, other languages without the words that English uses for content), one
// for the Cyrillic; other scripts have none and rely on the frequency profile of the text (relational.hpp).
#pragma once

#include <span>
#include <string_view>

#include "hsca/text/perfect_table.hpp"
#include "hsca/text/words.hpp"

namespace hsca {

extern const PerfectWordTable<1024> kFunctionWords;

inline bool is_function_word(const WordKey& key) noexcept { return kFunctionWords.contains(key); }

std::span<const std::string_view> function_words() noexcept;

}  // namespace hsca
