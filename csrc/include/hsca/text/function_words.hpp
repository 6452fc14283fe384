// function_words.hpp -- words that carry grammar rather than topic: articles, pronouns, prepositions, auxiliaries.
// One list for the Latin script (English whole, other languages without the words that English uses for content), one
// for the Cyrillic; other scripts have none and rely on the frequency profile of the text (relational.hpp).
#pragma once

#include <span>
#include <string_view>

#include "hsca/text/perfect_table.hpp"
#include "hsca/text/words.hpp"

namespace hsca {

// Person and tense as the function words of a sentence show them; relational.hpp watches how long each one lasts.
enum class Continuity : std::uint8_t { he, she, first_person, we, they, you, it, past, present };
inline constexpr std::size_t kContinuities = 9;

// 0 for other words; for a function word bit 15, and bit c when it belongs to Continuity c.
extern const PerfectWordTable<1024> kFunctionWords;
inline constexpr std::uint32_t kIsFunctionWord = 1u << 15;

inline bool is_function_word(const WordKey& key) noexcept { return kFunctionWords[key] != 0; }

std::span<const std::string_view> function_words() noexcept;

}  // namespace hsca
