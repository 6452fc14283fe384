// scan.hpp -- one pass over UTF-8 text that finds words, sentences and paragraphs, in order, without copying.
//
// Words are runs of letters, digits and marks; a single apostrophe, hyphen or underscore between two of them belongs to
// the word, as do '.' and ',' between two ASCII digits. Scripts without spaces give one word a pair of neighbouring
// characters. Sentences and paragraphs without a word do not exist.
//
// A sentence is cut after kMaxSentenceWords words: nothing written by people is longer, and it bounds the memory of
// whoever collects a sentence.
//
// The text is taken in stretches of 4 KiB: byte masks for the whole stretch, then multi-byte characters written into
// the masks, then the set bits are walked. Malformed UTF-8 belongs to no word and is never read past the end.
#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "hsca/text/byte_class.hpp"
#include "hsca/text/sentences.hpp"
#include "hsca/text/unicode.hpp"

namespace hsca {

inline constexpr std::size_t kMaxSentenceWords = 1000;

namespace detail {

// Masks of up to `kBlocks` 64-byte blocks and of the one after them, multi-byte characters included: afterwards
// `word` covers every byte of every word and `high` marks the first bytes of unspaced characters.
class MaskWindow {
  public:
    static constexpr std::size_t kBlocks = 64;

    MaskWindow(const unsigned char* text, std::size_t size, ClassifyBytes classify) noexcept
        : text_(text), size_(size), n_blocks_((size + 63) / 64), classify_(classify) {}

    std::size_t n_blocks() const noexcept { return n_blocks_; }
    const ByteMasks& operator[](std::size_t i) const noexcept { return masks_[i]; }

    // Moves to the blocks from `first` on; calls come in steps of kBlocks. Returns how many there are, without the
    // extra one.
    std::size_t move_to(std::size_t first) noexcept {
        const std::size_t known = first == 0 ? 0 : 1;  // the extra block of the last window
        if (known) masks_[0] = masks_[kBlocks];
        first_ = first;
        held_ = std::min(kBlocks + 1, n_blocks_ - first);
        fill(known);
        for (std::size_t b = known; b < held_; ++b) {
            if (masks_[b].high) write_characters(b);
        }
        return std::min(kBlocks, held_);
    }

  private:
    void fill(std::size_t from) noexcept {
        const std::size_t begin = (first_ + from) * 64;
        const std::size_t full = std::min(held_ - from, (size_ - std::min(begin, size_)) / 64);
        if (full) classify_(text_ + begin, full, masks_ + from);
        if (from + full < held_) {
            unsigned char tail[64] = {};
            const std::size_t at = begin + full * 64;
            std::memcpy(tail, text_ + at, size_ - at);
            classify_(tail, 1, masks_ + from + full);
        }
        if (spilled_ && from < held_) masks_[from].word |= (1ull << spilled_) - 1;
        spilled_ = 0;
    }

    void write_characters(std::size_t block) noexcept {
        const std::size_t base = (first_ + block) * 64;
        std::uint64_t unspaced = 0;
        for (std::uint64_t bits = masks_[block].high; bits; bits &= bits - 1) {
            const auto bit = static_cast<unsigned>(std::countr_zero(bits));
            const std::size_t at = base + bit;
            if (at < next_character_) continue;
            const CodePoint c = decode_utf8(text_ + at, text_ + size_);
            next_character_ = at + c.length;
            switch (char_class(c.value)) {
                case CharClass::lower:
                case CharClass::letter:
                case CharClass::digit:
                    write_word(at, c.length);
                    break;
                case CharClass::mark:
                    if (is_word_byte_before(at)) write_word(at, c.length);
                    break;
                case CharClass::joiner:
                    if (is_word_byte_before(at) && starts_word(at + c.length)) write_word(at, c.length);
                    break;
                case CharClass::unspaced:
                    unspaced |= 1ull << bit;
                    break;
                case CharClass::stop:
                case CharClass::wide_stop:
                case CharClass::paragraph:
                    masks_[block].event |= 1ull << bit;
                    break;
                default:
                    break;
            }
        }
        masks_[block].high = unspaced;
    }

    void write_word(std::size_t at, std::size_t length) noexcept {
        const std::size_t block = at / 64 - first_;
        const std::size_t bit = at % 64;
        const std::uint64_t bytes = (1ull << length) - 1;
        masks_[block].word |= bytes << bit;
        if (bit + length > 64) {
            const std::size_t over = bit + length - 64;
            if (block + 1 < held_) {
                masks_[block + 1].word |= (1ull << over) - 1;
            } else {
                spilled_ = over;
            }
        }
    }

    bool is_word_byte_before(std::size_t at) const noexcept {
        return at > first_ * 64 && (masks_[(at - 1) / 64 - first_].word >> ((at - 1) % 64) & 1);
    }

    bool starts_word(std::size_t at) const noexcept {
        return at < size_ && is_word_start(char_class(decode_utf8(text_ + at, text_ + size_).value));
    }

    const unsigned char* text_;
    std::size_t size_;
    std::size_t n_blocks_;
    ClassifyBytes classify_;
    std::size_t first_ = 0;
    std::size_t held_ = 0;
    std::size_t next_character_ = 0;
    std::size_t spilled_ = 0;
    ByteMasks masks_[kBlocks + 1];
};

}  // namespace detail

// Sink: word(begin, end), sentence(begin, end), paragraph(begin, end) with byte offsets, each called when the thing is
// complete; keep_going() once a stretch. Returns false when keep_going() said no.
template <class Sink>
bool scan_text(const unsigned char* text, std::size_t size, ClassifyBytes classify, Sink& sink) {
    detail::MaskWindow window(text, size, classify);
    SentenceContext context{text, size, skip_space(text, size, 0), 0, 0, false};
    context.in_heading = is_heading(text, size, context.sentence_begin);
    std::size_t paragraph_begin = context.sentence_begin;
    std::size_t paragraph_end = kNowhere;  // end of its last sentence, if it has one
    std::size_t resume = 0;
    std::size_t line_begin = 0;  // where the line after the last line feed has its first visible character
    std::size_t last_unspaced_end = kNowhere;  // where the last unspaced character ended, and where it began
    std::size_t last_unspaced_begin = 0;
    std::size_t open_word = kNowhere;  // begin of a word that reaches into the next block
    std::size_t sentence_words = 0;
    std::uint64_t word_carry = 0, digit_carry = 0;

    const auto close = [&](const Boundary& boundary) {
        if (sentence_words) {
            sink.sentence(context.sentence_begin, boundary.end);
            paragraph_end = boundary.end;
            sentence_words = 0;
            context.sentence_begin = skip_space(text, size, boundary.resume);
        }
        if (boundary.kind == Break::paragraph) {
            if (paragraph_end != kNowhere) sink.paragraph(paragraph_begin, paragraph_end);
            paragraph_end = kNowhere;
            context.sentence_begin = paragraph_begin = skip_space(text, size, boundary.resume);
        }
    };
    const auto emit_word = [&](std::size_t begin, std::size_t end) {
        context.word_begin = begin;
        context.word_end = end;
        sink.word(begin, end);
        if (++sentence_words == kMaxSentenceWords) [[unlikely]]
            close({Break::sentence, end, end});
    };
    const auto on_event = [&](std::size_t at) {
        const bool newline = text[at] == '\n' || text[at] == 0xE2;  // U+2029 and U+2026 share a first byte
        const bool ends_line = newline && (text[at] == '\n' || char_class(decode_utf8(text + at, text + size).value) ==
                                                                   CharClass::paragraph);
        const Boundary boundary = ends_line ? boundary_at_newline(context, at) : boundary_at_stop(context, at);
        resume = boundary.resume;
        if (boundary.kind != Break::none) close(boundary);
        if (ends_line && at >= line_begin) {  // once a run of white space: a run of line feeds must not cost its square
            line_begin = skip_space(text, size, at);
            context.in_heading = is_heading(text, size, line_begin);
        }
    };
    const auto on_unspaced = [&](std::size_t at) {
        const std::size_t end = at + decode_utf8(text + at, text + size).length;
        if (last_unspaced_end == at) {
            emit_word(last_unspaced_begin, end);
        } else if (end >= size || char_class(decode_utf8(text + end, text + size).value) != CharClass::unspaced) {
            emit_word(at, end);
        }
        last_unspaced_begin = at;
        last_unspaced_end = end;
    };

    for (std::size_t first = 0; first < window.n_blocks(); first += detail::MaskWindow::kBlocks) {
        const std::size_t count = window.move_to(first);
        for (std::size_t b = 0; b < count; ++b) {
            const ByteMasks& m = window[b];
            const std::size_t base = (first + b) * 64;
            const bool is_last = first + b + 1 == window.n_blocks();
            const std::uint64_t next_word = is_last ? 0 : window[b + 1].word << 63;
            const std::uint64_t next_digit = is_last ? 0 : window[b + 1].digit << 63;
            std::uint64_t word = m.word;
            word |= m.joiner & (m.word << 1 | word_carry) & (m.word >> 1 | next_word);
            word |= m.separator & (m.digit << 1 | digit_carry) & (m.digit >> 1 | next_digit);
            const std::uint64_t before = word << 1 | (open_word != kNowhere);
            std::uint64_t starts = word & ~before;
            std::uint64_t ends = ~word & before;
            std::uint64_t events = (m.event & ~word) | m.high;
            word_carry = m.word >> 63;
            digit_carry = m.digit >> 63;

            // A word that reached into this block ends before anything else in it.
            if (open_word != kNowhere && ends) {
                emit_word(open_word, base + static_cast<unsigned>(std::countr_zero(ends)));
                ends &= ends - 1;
                open_word = kNowhere;
            }
            for (;;) {
                const unsigned limit = events ? static_cast<unsigned>(std::countr_zero(events)) : 64;
                std::uint64_t due = limit == 64 ? ends : ends & ((2ull << limit) - 1);
                ends ^= due;
                for (; due; due &= due - 1) {
                    emit_word(base + static_cast<unsigned>(std::countr_zero(starts)),
                              base + static_cast<unsigned>(std::countr_zero(due)));
                    starts &= starts - 1;
                }
                if (!events) break;
                const std::size_t at = base + limit;
                if (m.high >> limit & 1) {
                    on_unspaced(at);
                } else if (at >= resume) {
                    on_event(at);
                }
                events &= events - 1;
            }
            if (starts) open_word = base + static_cast<unsigned>(std::countr_zero(starts));
        }
        if (!sink.keep_going()) return false;
    }
    if (open_word != kNowhere) emit_word(open_word, size);
    std::size_t end = size;
    while (end > 0 && (text[end - 1] == ' ' || (text[end - 1] >= '\t' && text[end - 1] <= '\r'))) --end;
    close({Break::paragraph, end, size});
    return true;
}

}  // namespace hsca
