// sentences.hpp -- does the sentence end here? Asked by the scanner at every stop mark and line feed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsca {

inline constexpr std::size_t kNowhere = static_cast<std::size_t>(-1);

enum class Break : std::uint8_t { none, sentence, paragraph };

struct Boundary {
    Break kind;
    std::size_t end;     // where the sentence ends (closing quotes included, white space not)
    std::size_t resume;  // no further boundary is looked for before this byte
};

// What the scanner knows when it asks.
struct SentenceContext {
    const unsigned char* text;
    std::size_t size;
    std::size_t sentence_begin;
    std::size_t word_begin;  // the last word before the mark
    std::size_t word_end;
    bool in_heading;  // the line is a Markdown heading: its end is a sentence's end
};

// At a stop mark. A run of marks and closing quotes ends a sentence when white space or the end follows, unless
//   - a lower-case word follows an ellipsis, a closed quotation, or a full stop that is not attached to a word,
//   - the full stop belongs to a title ("Dr."), to an initial, acronym or other abbreviation that is not followed by a
//     capitalised function word, or to a list marker ("2.") that opens the sentence.
// Without white space only a capitalised function word right after a word of four bytes or more starts a sentence. A
// smiley after the marks belongs to them. Wide marks (as in Chinese and Japanese) need no white space.
Boundary boundary_at_stop(const SentenceContext& context, std::size_t position) noexcept;

// At a line feed (or U+2029). A blank line ends the paragraph. A line that starts with a list marker or a Markdown
// heading ends the sentence before it; any other line is wrapped text and goes on.
Boundary boundary_at_newline(const SentenceContext& context, std::size_t position) noexcept;

// Does a Markdown heading ("## ") start at `position`?
bool is_heading(const unsigned char* text, std::size_t size, std::size_t position) noexcept;

// First position from `position` on that is not white space.
std::size_t skip_space(const unsigned char* text, std::size_t size, std::size_t position) noexcept;

}  // namespace hsca
