// function_words.hpp -- words that carry grammar rather than topic: articles, pronouns, prepositions, auxiliaries.
// One list for the Latin script (English whole, other languages without the words that English uses for content), one
// for the Cyrillic; other scripts have none and rely on the frequency profile of the text (relational.hpp).
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "hsca/text/word_table.hpp"
#include "hsca/text/words.hpp"

namespace hsca {

// Person and tense as the function words of a sentence show them; relational.hpp watches how long each one lasts.
enum class Continuity : std::uint8_t { he, she, first_person, we, they, you, it, past, present };
inline constexpr std::size_t kContinuities = 9;
inline constexpr std::uint32_t kIsFunctionWord = 1u << 15;

// Every function word; its value has bit 15, and bit c when it belongs to Continuity c.
std::span<const WordTable::Entry> function_word_entries();

bool is_function_word(const WordKey& key) noexcept;

std::span<const std::string_view> function_words() noexcept;

}  // namespace hsca
