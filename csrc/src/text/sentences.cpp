#include "hsca/text/sentences.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "hsca/text/function_words.hpp"
#include "hsca/text/unicode.hpp"

namespace hsca {

namespace {

// Never the end of a sentence: a name or number follows.
constexpr std::string_view kTitles[] = {
    "mr",  "mrs",  "ms",   "dr",   "prof", "rev", "hon",  "gen",    "col",    "lt",   "maj",  "sgt", "capt",
    "cpt", "cmdr", "adm",  "gov",  "sen",  "rep", "pres", "messrs", "mme",    "mlle", "mt",   "st",  "fr",
    "sr",  "supt", "fig",  "figs", "eq",   "eqs", "sec",  "ch",     "vol",    "vols", "pp",   "nos", "no",
    "art", "cf",   "vs",   "viz",  "al",   "ed",  "eds",  "op",     "approx", "ca",   "resp", "ref", "refs",
    "tab", "cap",  "bros", "dept", "herr", "hr",  "nr",   "abs",    "bzw",    "usw",  "ggf",  "sra", "ing",
};
// The end of a sentence only when a capitalised function word follows.
constexpr std::string_view kAbbreviations[] = {
    "jr",   "inc",  "ltd",  "co",   "corp", "etc",  "esq",   "jan",  "feb",  "mar",  "apr", "jun",  "jul",
    "aug",  "sep",  "sept", "oct",  "nov",  "dec",  "mon",   "tue",  "tues", "wed",  "thu", "thur", "thurs",
    "fri",  "ave",  "blvd", "rd",   "hwy",  "univ", "assn",  "est",  "min",  "max",  "ft",  "oz",   "lb",
    "lbs",  "hrs",  "tel",  "ext",  "dist", "intl", "calif", "mass", "conn", "penn", "tex", "fla",  "ariz",
    "colo", "mich", "minn", "okla", "wash", "wis",  "tenn",  "p",    "ph",   "gmbh", "llc", "plc",
};

enum class StopKind : std::uint8_t { plain, title, abbreviation };

StopKind stop_kind(const WordKey& key) noexcept {
    static const WordTable table = [] {
        std::vector<WordTable::Entry> entries;
        const auto add = [&](std::string_view word, StopKind kind) {
            entries.push_back({folded_key(word), static_cast<std::uint64_t>(kind)});
        };
        for (const std::string_view word : kTitles) add(word, StopKind::title);
        for (const std::string_view word : kAbbreviations) add(word, StopKind::abbreviation);
        return WordTable(entries);
    }();
    return static_cast<StopKind>(table[key]);
}

constexpr bool is_ascii_letter(unsigned char c) noexcept { return (c | 0x20u) - 'a' < 26u; }
constexpr bool is_ascii_digit(unsigned char c) noexcept { return c - unsigned{'0'} < 10u; }
constexpr bool is_blank(unsigned char c) noexcept {
    return c == ' ' || c == '\t' || c == '\r' || c == '\v' || c == '\f';
}

// char_class for ASCII, without leaving this file.
constexpr CharClass ascii_class(unsigned char c) noexcept {
    if (c - unsigned{'a'} < 26u) return CharClass::lower;
    if (c - unsigned{'A'} < 26u) return CharClass::letter;
    if (is_ascii_digit(c)) return CharClass::digit;
    switch (c) {
        case '.':
        case '!':
        case '?':
            return CharClass::stop;
        case '"':
        case ')':
        case ']':
        case '}':
            return CharClass::closer;
        case '(':
        case '[':
        case '{':
            return CharClass::opener;
        case '\'':
        case '-':
        case '_':
            return CharClass::joiner;
        case ' ':
        case '\t':
        case '\n':
        case '\v':
        case '\f':
        case '\r':
            return CharClass::space;
        default:
            return CharClass::other;
    }
}

struct Char {
    CharClass kind;
    std::uint32_t value;
    std::size_t length;
};

Char char_at(const SentenceContext& context, std::size_t at) noexcept {
    const unsigned char byte = context.text[at];
    if (byte < 0x80) return {ascii_class(byte), byte, 1};
    const CodePoint c = decode_utf8(context.text + at, context.text + context.size);
    return {char_class(c.value), c.value, c.length};
}

bool is_quote(std::uint32_t c) noexcept { return c == '\'' || c == 0x2019; }

// Does a function word ("The", "It", "however") stand at `at`?
bool starts_with_function_word(const SentenceContext& context, std::size_t at) noexcept {
    std::size_t end = at;
    while (end < context.size && end - at < 16 && is_ascii_letter(context.text[end])) ++end;
    if (end == at) return false;
    WordKey key{0, 0};
    fold_word_quickly(context.text + at, end - at, context.text + context.size, key);
    return is_function_word(key);
}

// Past a smiley after the marks, as in "Fine. :-)": it belongs to the sentence before it.
std::size_t skip_emoticon(const SentenceContext& context, std::size_t at) noexcept {
    std::size_t next = at;
    while (next < context.size && context.text[next] == ' ') ++next;
    if (next == at || next >= context.size || (context.text[next] != ':' && context.text[next] != ';')) return at;
    ++next;
    if (next < context.size && context.text[next] == '-') ++next;
    if (next >= context.size || (context.text[next] != ')' && context.text[next] != '(')) return at;
    ++next;
    const bool ends =
        next == context.size || context.text[next] == ' ' || (context.text[next] >= '\t' && context.text[next] <= '\r');
    return ends ? next : at;
}

StopKind kind_of_full_stop(const SentenceContext& context, std::size_t stop) noexcept {
    if (context.word_end != stop || context.word_begin == context.word_end) return StopKind::plain;
    const unsigned char* word = context.text + context.word_begin;
    const std::size_t length = context.word_end - context.word_begin;
    const bool single_letter = length == 1 && is_ascii_letter(word[0]);
    // "2." or "b." that opens the sentence is a list marker, and a name or number follows it as it does a title.
    if (context.word_begin == context.sentence_begin &&
        (single_letter || (length <= 3 && std::all_of(word, word + length, is_ascii_digit)))) {
        return StopKind::title;
    }
    if (length > 8) return StopKind::plain;
    const bool after_dot = context.word_begin >= 2 && word[-1] == '.' && is_ascii_letter(word[-2]);
    if (after_dot && length <= 2 && is_ascii_letter(word[0])) return StopKind::abbreviation;  // U.S.  e.g.  Ph.D.
    if (single_letter && word[0] < 'a') return StopKind::abbreviation;                        // an initial
    WordKey key{0, 0};
    fold_word_quickly(word, length, context.text + context.size, key);
    return stop_kind(key);
}

bool is_list_marker(const SentenceContext& context, std::size_t at) noexcept {
    const auto followed_by_blank = [&](std::size_t next) {
        return next < context.size && (context.text[next] == ' ' || context.text[next] == '\t');
    };
    const unsigned char c = context.text[at];
    if (c == '-' || c == '*' || c == '+') return followed_by_blank(at + 1);
    if (c >= 0x80) {
        const Char wide = char_at(context, at);
        const bool bullet = wide.value == 0x2022 || wide.value == 0x2013 || wide.value == 0x2014 ||
                            wide.value == 0x25AA || wide.value == 0x25CF || wide.value == 0x25E6 ||
                            wide.value == 0x2043;
        return bullet && followed_by_blank(at + wide.length);
    }
    std::size_t end = at;
    while (end < context.size && end - at < 3 && is_ascii_digit(context.text[end])) ++end;
    if (end > at) {
        return end < context.size && (context.text[end] == '.' || context.text[end] == ')') &&
               followed_by_blank(end + 1);
    }
    return is_ascii_letter(c) && at + 1 < context.size && context.text[at + 1] == ')' && followed_by_blank(at + 2);
}

}  // namespace

std::size_t skip_space(const unsigned char* text, std::size_t size, std::size_t position) noexcept {
    while (position < size) {
        const unsigned char c = text[position];
        if (c == ' ' || (c >= '\t' && c <= '\r')) {
            ++position;
            continue;
        }
        if (c < 0x80) break;
        const CodePoint wide = decode_utf8(text + position, text + size);
        const CharClass kind = char_class(wide.value);
        if (kind != CharClass::space && kind != CharClass::paragraph) break;
        position += wide.length;
    }
    return position;
}

bool is_heading(const unsigned char* text, std::size_t size, std::size_t position) noexcept {
    std::size_t end = position;
    while (end < size && end - position < 7 && text[end] == '#') ++end;
    return end > position && end - position < 7 && end < size && (text[end] == ' ' || text[end] == '\t');
}

Boundary boundary_at_stop(const SentenceContext& context, std::size_t position) noexcept {
    std::size_t end = position;
    std::size_t full_stops = 0;
    bool ellipsis = false, strong = false, wide = false;
    while (end < context.size) {
        const Char c = char_at(context, end);
        if (c.kind != CharClass::stop && c.kind != CharClass::wide_stop) break;
        wide = c.kind == CharClass::wide_stop;
        if (c.value == '.') {
            ++full_stops;
        } else if (c.value == 0x2026) {
            ellipsis = true;
        } else {
            strong = true;
        }
        end += c.length;
    }
    ellipsis = ellipsis || full_stops >= 2;
    const std::size_t marks_end = end;
    while (end < context.size) {
        const Char c = char_at(context, end);
        if (c.kind != CharClass::closer && !is_quote(c.value)) break;
        end += c.length;
    }
    const bool closed = end > marks_end;
    end = skip_emoticon(context, end);
    const Boundary yes{Break::sentence, end, end};
    const Boundary no{Break::none, end, end};

    if (wide || end == context.size) return yes;
    std::size_t next = skip_space(context.text, context.size, end);
    if (next == end) {
        // No space: a name or number, unless a long word ends and "The", "You" or the like begins.
        const bool run_on = !ellipsis && !closed && context.word_end == position &&
                            context.word_end - context.word_begin > 3 && context.text[next] < 'a' &&
                            starts_with_function_word(context, next);
        return run_on ? yes : no;
    }
    if (next == context.size) return yes;
    if (std::count(context.text + end, context.text + next, '\n') >= 2) return yes;
    if (char_at(context, next).kind == CharClass::stop) return no;  // a spaced ellipsis: the last one decides
    for (int i = 0; i < 4 && next < context.size; ++i) {
        const Char c = char_at(context, next);
        if (c.kind != CharClass::opener && c.value != '"' && !is_quote(c.value)) break;
        next += c.length;
    }
    const bool lower = next < context.size && char_at(context, next).kind == CharClass::lower;
    if (strong) return lower && closed ? no : yes;
    if (ellipsis || closed) return lower ? no : yes;
    switch (kind_of_full_stop(context, position)) {
        case StopKind::title:
            return no;
        case StopKind::abbreviation:
            return !lower && starts_with_function_word(context, next) ? yes : no;
        case StopKind::plain:
            break;
    }
    // People who write without capitals still end their sentences.
    return !lower || context.word_end == position ? yes : no;
}

Boundary boundary_at_newline(const SentenceContext& context, std::size_t position) noexcept {
    std::size_t end = position;
    while (end > context.sentence_begin && is_blank(context.text[end - 1])) --end;
    if (context.text[position] != '\n')
        return {Break::paragraph, end, skip_space(context.text, context.size, position + 3)};
    std::size_t next = position + 1;
    while (next < context.size && is_blank(context.text[next])) ++next;
    if (next == context.size) return {Break::none, end, next};
    if (context.text[next] == '\n') return {Break::paragraph, end, skip_space(context.text, context.size, next)};
    if (context.in_heading || is_heading(context.text, context.size, next) || is_list_marker(context, next)) {
        return {Break::sentence, end, next};
    }
    return {Break::none, end, next};
}

}  // namespace hsca
