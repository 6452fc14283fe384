// tokens.hpp -- how many tokens a text is likely to cost, from its characters alone (section 3).
//
//   host     ceil(UTF-16 units / chi); chi is 1.6 when the text holds any CJK character, else 2.5 when it holds any
//            Cyrillic, Arabic or Hebrew one, else 4. Empty text costs 0.
//   sidecar  max(floor(code points / 4), 1)
//   fitted   a linear function of counts of characters by kind (tools/validate_token_estimates.py fits it), rounded;
//            at least 1 for text, 0 for empty text
//
// The three are never mixed. A malformed byte of UTF-8 is one character.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "hsca/parallel.hpp"

namespace hsca {

enum class TokenRule { host, sidecar, fitted };

// What the fitted rule counts. Characters beyond ASCII are told by the first byte of their UTF-8.
enum TokenFeature : std::size_t {
    kLetters,       // a-z A-Z
    kWords,         // runs of ASCII letters and bytes beyond ASCII
    kPunctuation,   // other ASCII characters that print
    kDigits,        // 0-9
    kLatin,         // U+0080 to U+037F
    kGreek,         // U+0380 to U+03FF
    kCyrillic,      // U+0400 to U+053F
    kTwoByte,       // U+0540 to U+07FF: Hebrew, Arabic and others
    kCjk,           // U+3000 to U+DFFF: kana, Han, Hangul
    kThreeByte,     // the rest of the basic plane
    kFourByte,      // beyond it
    kTokenFeatures  //
};

struct CharacterCounts {
    std::size_t code_points = 0;
    std::size_t utf16_units = 0;
    bool has_cjk = false;  // U+4E00-9FAF, 3041-3096, 30A1-30FA or AC00-D7A3
    bool has_mid = false;  // U+0400-04FF, 0590-05FF or 0600-06FF
};

CharacterCounts count_characters(std::string_view text) noexcept;
std::array<std::size_t, kTokenFeatures> count_features(std::string_view text) noexcept;

// Tokens per feature, for the fitted rule.
std::span<const double> fitted_coefficients() noexcept;

std::int64_t estimate_tokens(std::string_view text, TokenRule rule) noexcept;

// Throws std::invalid_argument when sizes differ. Counts above 2^31 - 1 are given as that. False when stopped by
// `poll`.
bool estimate_tokens(std::span<const std::string_view> texts, TokenRule rule, std::size_t threads, Stop::Poll poll,
                     std::span<std::int32_t> out);

}  // namespace hsca
