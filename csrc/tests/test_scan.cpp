// scan.hpp, segment.hpp and sentences.hpp
#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "check.hpp"
#include "hsca/text/scan.hpp"
#include "hsca/text/segment.hpp"

using namespace hsca;

namespace {

using Offsets = std::vector<std::int64_t>;

// At every level, from a block of exactly the text's size; they must agree.
Segments segments(std::string_view text) {
    const std::vector<char> exact(text.begin(), text.end());
    const std::string_view view(exact.data(), exact.size());
    Segments found, other;
    segment(view, SimdLevel::scalar, found);
    for (const SimdLevel level : {SimdLevel::baseline}) {
        segment(view, level, other);
        CHECK(other.words == found.words && other.sentences == found.sentences && other.paragraphs == found.paragraphs);
    }
    return found;
}

// Character by character, as the header says it in words.
Offsets naive_words(std::string_view text) {
    struct Character {
        std::size_t begin, end;
        CharClass kind;
        std::uint32_t value;
    };
    std::vector<Character> chars;
    const auto* p = reinterpret_cast<const unsigned char*>(text.data());
    for (std::size_t at = 0; at < text.size();) {
        const CodePoint c = decode_utf8(p + at, p + text.size());
        chars.push_back({at, at + c.length, char_class(c.value), c.value});
        at += c.length;
    }
    const std::size_t n = chars.size();
    const auto kind = [&](std::size_t i) { return i < n ? chars[i].kind : CharClass::other; };
    const auto is_digit = [&](std::size_t i) { return i < n && chars[i].value >= '0' && chars[i].value <= '9'; };
    Offsets words;
    const auto add = [&](std::size_t first, std::size_t last) {
        words.push_back(static_cast<std::int64_t>(chars[first].begin));
        words.push_back(static_cast<std::int64_t>(chars[last].end));
    };
    for (std::size_t i = 0; i < n;) {
        std::size_t j = i + 1;
        if (kind(i) == CharClass::unspaced) {
            while (kind(j) == CharClass::unspaced) ++j;
            for (std::size_t k = i; k + 1 < j; ++k) add(k, k + 1);
            if (j == i + 1) add(i, i);
        } else if (is_word_start(kind(i))) {
            while (is_word_start(kind(j)) || kind(j) == CharClass::mark ||
                   (kind(j) == CharClass::joiner && is_word_start(kind(j + 1))) ||
                   (j < n && (chars[j].value == '.' || chars[j].value == ',') && is_digit(j - 1) && is_digit(j + 1))) {
                ++j;
            }
            add(i, j - 1);
        }
        i = j;
    }
    return words;
}

void check_order(std::string_view text, const Segments& found) {
    const auto size = static_cast<std::int64_t>(text.size());
    for (const Offsets* spans : {&found.sentences, &found.paragraphs}) {
        std::int64_t last = 0;
        for (const std::int64_t at : *spans) {
            if (at < last || at > size)
                return check::fail(__FILE__, __LINE__, "spans overlap or turn back in " + check::show(text));
            last = at;
        }
        for (std::size_t i = 0; i < spans->size(); i += 2) {
            if ((*spans)[i] == (*spans)[i + 1])
                check::fail(__FILE__, __LINE__, "an empty span in " + check::show(text));
        }
    }
    // Each sentence holds the end of a word, each word ends in a sentence, each sentence lies in a paragraph.
    std::size_t w = 0;
    for (std::size_t s = 0; s < found.sentences.size(); s += 2) {
        const std::size_t before = w;
        while (w < found.words.size() && found.words[w + 1] <= found.sentences[s + 1]) {
            if (found.words[w + 1] <= found.sentences[s])
                check::fail(__FILE__, __LINE__, "a word outside of its sentence in " + check::show(text));
            w += 2;
        }
        if (w == before) check::fail(__FILE__, __LINE__, "a sentence without a word in " + check::show(text));
    }
    CHECK_EQ(w, found.words.size());
    std::size_t s = 0;
    for (std::size_t p = 0; p < found.paragraphs.size(); p += 2) {
        CHECK(s < found.sentences.size() && found.sentences[s] >= found.paragraphs[p]);
        while (s < found.sentences.size() && found.sentences[s + 1] <= found.paragraphs[p + 1]) s += 2;
    }
    CHECK_EQ(s, found.sentences.size());
}

constexpr std::string_view kPieces[] = {
    "a",
    "B",
    "word",
    "The ",
    "1",
    "2.5",
    ".",
    ",",
    "'",
    "-",
    "_",
    " ",
    "\n",
    "\n\n",
    "\r\n",
    ". ",
    "! ",
    "?",
    "...",
    "\u2026",
    "\"",
    ")",
    "(",
    "\u00E9",
    "\u00C9",
    "\u0436",
    "\u0301",
    "\u00AD",
    "\u2019",
    "\u4E2D",
    "\u6587",
    "\u3002",
    "\u2029",
    "\u2028",
    "\u00A0",
    "\U0001F600",
    "\U00010400",
    "\xC3",
    "\x80",
    "\xE2\x80",
    "\xF0\x9F",
    "\xFF",
    "# ",
    "- ",
    "Dr. ",
    "U.S. ",
    " :)",
    " :D",
    " ;-p ",
    "done.The ",
    "abcdefghijklmnopqrst",
    std::string_view("\0", 1),
};

void random_texts() {
    check::Random random{7};
    for (int round = 0; round < 2000; ++round) {
        std::string text;
        for (std::size_t n = random.below(60); n; --n) text += random.of(kPieces);
        const Segments found = segments(text);
        CHECK(found.words == naive_words(text));
        check_order(text, found);
    }
    for (const std::size_t size :
         {0u, 1u, 2u, 63u, 64u, 65u, 127u, 128u, 129u, 4031u, 4095u, 4096u, 4097u, 4160u, 8191u, 8192u, 8193u}) {
        for (int round = 0; round < 20; ++round) {
            std::string text;
            while (text.size() < size) text += random.of(kPieces);
            text.resize(size);
            const Segments found = segments(text);
            CHECK(found.words == naive_words(text));
            check_order(text, found);
        }
    }
}

// Every piece across every border of a block and of a stretch.
void borders() {
    for (const std::string_view piece : kPieces) {
        for (const std::size_t border : {64u, 4096u, 4160u}) {
            for (std::size_t before = border - 6; before <= border; ++before) {
                for (const char fill : {' ', 'x', '7'}) {
                    const std::string text =
                        std::string(before, fill) + std::string(piece) + std::string(1, fill) + "y";
                    CHECK(segments(text).words == naive_words(text));
                    const std::string cut = std::string(before, fill) + std::string(piece);
                    CHECK(segments(cut).words == naive_words(cut));
                }
            }
        }
    }
}

struct Example {
    std::string_view text;
    std::vector<std::string_view> sentences;
    std::size_t n_paragraphs = 1;
};

const Example kExamples[] = {
    {"", {}, 0},
    {"... !? \n\n", {}, 0},
    {"One. Two! Three? Four", {"One.", "Two!", "Three?", "Four"}},
    {"Dr. Smith came. He left.", {"Dr. Smith came.", "He left."}},
    {"In the U.S. Senate. The U.S. The end.", {"In the U.S. Senate.", "The U.S.", "The end."}},
    {"He said \"Stop.\" Then he went.", {"He said \"Stop.\"", "Then he went."}},
    {"Wait... what? Yes.", {"Wait... what?", "Yes."}},
    {"It costs 3.50 now. ok then. fine", {"It costs 3.50 now.", "ok then.", "fine"}},
    {"A first.\n\nA second\n \nA third", {"A first.", "A second", "A third"}, 3},
    {"wrapped\nline here. Next", {"wrapped\nline here.", "Next"}},
    {"# Title\nText here", {"# Title", "Text here"}},
    {"Items:\n- one\n- two", {"Items:", "- one", "- two"}},
    {"\u4E2D\u6587\u3002\u4E2D\u6587", {"\u4E2D\u6587\u3002", "\u4E2D\u6587"}},
    {"one\u2029\u2029\n\u2029two", {"one", "two"}, 2},
    {"We are done.The end", {"We are done.", "The end"}},
    {"Fine. :-) Good.", {"Fine. :-)", "Good."}},
    // A smiley's letter is a word, so it must not lie behind the end of its sentence.
    {"Fine. :D   ", {"Fine.", ":D"}},
    {"Fine. ;-p\n\nGood one.", {"Fine.", ";-p", "Good one."}, 2},
};

void examples() {
    for (const Example& example : kExamples) {
        // Moved over the borders of blocks and stretches nothing may change.
        for (std::size_t shift = 0; shift <= 4100; shift = shift == 66 ? 4060 : shift + 1) {
            const std::string text = std::string(shift, ' ') + std::string(example.text);
            const Segments found = segments(text);
            CHECK_EQ(found.sentences.size(), 2 * example.sentences.size());
            CHECK_EQ(found.paragraphs.size(), 2 * example.n_paragraphs);
            CHECK(found.words == naive_words(text));
            check_order(text, found);
            for (std::size_t i = 0; i < std::min(found.sentences.size() / 2, example.sentences.size()); ++i) {
                const auto begin = static_cast<std::size_t>(found.sentences[2 * i]),
                           end = static_cast<std::size_t>(found.sentences[2 * i + 1]);
                CHECK_EQ(std::string_view(text).substr(begin, end - begin), example.sentences[i]);
            }
        }
    }
}

// Whoever collects a sentence may rely on kMaxSentenceWords.
struct CountingSink {
    std::size_t words = 0, most = 0, stretches = 0, allowed = kNowhere;
    void word(std::size_t, std::size_t) { most = std::max(most, ++words); }
    void sentence(std::size_t, std::size_t) { words = 0; }
    void paragraph(std::size_t, std::size_t) {}
    bool keep_going() { return ++stretches <= allowed; }
};

std::string repeated(std::string_view unit, std::size_t times) {
    std::string text;
    while (times--) text += unit;
    return text;
}

void long_sentences() {
    for (const std::string_view unit : {"word ", "\u4E2D", "a\u4E2D", "1,", "x."}) {
        for (const std::size_t n : {999u, 1000u, 1001u, 2500u}) {
            for (const std::string_view end : {"", ". :D", ". :D then"}) {
                const std::string text = repeated(unit, n) + std::string(end);
                CountingSink sink;
                scan_text(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                          classify_bytes(SimdLevel::baseline), sink);
                CHECK(sink.most <= kMaxSentenceWords);
                CHECK_EQ(sink.words, 0u);
                check_order(text, segments(text));
            }
        }
    }
    const std::string text = repeated("word ", 5000);
    CountingSink sink;
    sink.allowed = 2;
    CHECK(!scan_text(reinterpret_cast<const unsigned char*>(text.data()), text.size(),
                     classify_bytes(SimdLevel::baseline), sink));
    CHECK_EQ(sink.stretches, 3u);
}

// Each of these took the square of its length in time, or could: minutes at this size.
void no_square_times() {
    for (const std::string_view unit :
         {"\u2029", "\n\u00A0", "\n\u2028", "\n", "\n ", ". ", ".\n", ".)", ".  :", "'", "a'", "\u0301", "\xE2"}) {
        const std::string text = repeated(unit, 100000);
        const auto start = std::chrono::steady_clock::now();
        Segments found;
        segment(text, SimdLevel::baseline, found);
        const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
        if (seconds > 5.0)
            check::fail(__FILE__, __LINE__, "a run of " + check::show(unit) + " takes " + check::show(seconds) + " s");
    }
}

}  // namespace

int main() {
    random_texts();
    borders();
    examples();
    long_sentences();
    no_square_times();
    Segments none;
    segment(std::string_view(), SimdLevel::baseline, none);
    CHECK(none.words.empty() && none.sentences.empty() && none.paragraphs.empty());
    return check::result();
}
