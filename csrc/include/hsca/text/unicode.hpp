// unicode.hpp -- what a code point is to the segmenter, and its case-folded form.
// Both come from tables generated once (tools/make_unicode_tables.py), so a result never depends on the platform's
// locale.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hsca {

enum class CharClass : std::uint8_t {
    other,
    lower,   // lower-case letter: a sentence rarely starts with it
    letter,  // any other letter of a spaced script
    digit,
    mark,       // combining marks, joiners of scripts, soft hyphen: continue a word, never start one
    unspaced,   // a character of a script written without spaces
    stop,       // ends a sentence when white space follows
    wide_stop,  // ends a sentence whatever follows
    closer,
    opener,
    joiner,  // apostrophe, hyphen, underscore: part of a word between two of its characters
    space,
    paragraph,  // U+2029
};

struct CodePoint {
    std::uint32_t value;
    std::uint32_t length;  // bytes, at least 1
};

// Decodes the character at text[0]. A malformed or truncated sequence is one byte of U+FFFD: nothing past `end` is
// read.
CodePoint decode_utf8(const unsigned char* text, const unsigned char* end) noexcept;

// At most 4 bytes into `out`; returns the number written.
std::size_t encode_utf8(std::uint32_t code_point, unsigned char* out) noexcept;

CharClass char_class(std::uint32_t code_point) noexcept;

// Case-folded UTF-8 of one character, at most 7 bytes into `out`; returns the number written (0 for a soft hyphen).
std::size_t fold_char(std::uint32_t code_point, unsigned char* out) noexcept;

std::string_view unicode_version() noexcept;

inline bool is_word_start(CharClass c) noexcept {
    return c == CharClass::lower || c == CharClass::letter || c == CharClass::digit;
}

}  // namespace hsca
