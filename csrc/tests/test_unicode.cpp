#include <vector>

#include "check.hpp"
#include "hsca/text/unicode.hpp"

using namespace hsca;

namespace {

std::string encode(std::uint32_t cp) {
    std::string s;
    const auto put = [&s](std::uint32_t byte) { s += static_cast<char>(static_cast<unsigned char>(byte)); };
    if (cp < 0x80) {
        put(cp);
    } else if (cp < 0x800) {
        put(0xC0 | cp >> 6);
        put(0x80 | (cp & 63));
    } else if (cp < 0x10000) {
        put(0xE0 | cp >> 12);
        put(0x80 | (cp >> 6 & 63));
        put(0x80 | (cp & 63));
    } else {
        put(0xF0 | cp >> 18);
        put(0x80 | (cp >> 12 & 63));
        put(0x80 | (cp >> 6 & 63));
        put(0x80 | (cp & 63));
    }
    return s;
}

bool is_scalar(std::uint32_t cp) { return cp < 0xD800 || (cp > 0xDFFF && cp < 0x110000); }

// A block of exactly this size, so that a sanitizer sees a read past the end.
CodePoint decode(std::string_view bytes) {
    const std::vector<unsigned char> exact(bytes.begin(), bytes.end());
    return decode_utf8(exact.data(), exact.data() + exact.size());
}

void every_code_point_and_every_prefix_of_it() {
    for (std::uint32_t cp = 0; cp < 0x110000; ++cp) {
        if (!is_scalar(cp)) continue;
        const std::string s = encode(cp);
        const auto* p = reinterpret_cast<const unsigned char*>(s.data());
        const CodePoint c = decode_utf8(p, p + s.size());
        CHECK_EQ(c.value, cp);
        CHECK_EQ(c.length, s.size());
        for (std::size_t n = 1; n < s.size(); ++n) {
            const CodePoint cut = decode_utf8(p, p + n);
            CHECK_EQ(cut.value, 0xFFFDu);
            CHECK_EQ(cut.length, 1u);
        }
    }
}

// Oracle: a sequence is good exactly when encoding some code point gives it.
void malformed_sequences() {
    const unsigned tails[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF, 0xC0, 0xFF};
    for (unsigned lead = 0x80; lead < 0x100; ++lead) {
        for (const unsigned a : tails) {
            for (const unsigned b : tails) {
                for (const unsigned d : tails) {
                    std::string s;
                    for (const unsigned byte : {lead, a, b, d})
                        s += static_cast<char>(static_cast<unsigned char>(byte));
                    for (std::size_t size = 1; size <= 4; ++size) {
                        const CodePoint c = decode(std::string_view(s).substr(0, size));
                        bool good = false;
                        if (c.length > 1 && c.length <= size && is_scalar(c.value))
                            good = encode(c.value) == s.substr(0, c.length);
                        CHECK(good || (c.value == 0xFFFD && c.length == 1));
                    }
                }
            }
        }
    }
}

void classes() {
    CHECK(char_class('a') == CharClass::lower);
    CHECK(char_class('Z') == CharClass::letter);
    CHECK(char_class('7') == CharClass::digit);
    CHECK(char_class('_') == CharClass::joiner);
    CHECK(char_class(0x2019) == CharClass::joiner);
    CHECK(char_class('.') == CharClass::stop);
    CHECK(char_class(0x2026) == CharClass::stop);
    CHECK(char_class(0x3002) == CharClass::wide_stop);
    CHECK(char_class(0x2029) == CharClass::paragraph);
    CHECK(char_class('\n') == CharClass::space);
    CHECK(char_class(0xA0) == CharClass::space);
    CHECK(char_class(0x4E00) == CharClass::unspaced);
    CHECK(char_class(0x301) == CharClass::mark);
    CHECK(char_class(0xAD) == CharClass::mark);
    CHECK(char_class(0x10FFFF) == CharClass::other);
    CHECK(char_class(0xFFFD) == CharClass::other);  // malformed bytes belong to no word
    std::size_t paragraphs = 0;
    for (std::uint32_t cp = 0; cp < 0x110000; ++cp) {
        CHECK(char_class(cp) <= CharClass::paragraph);
        paragraphs += char_class(cp) == CharClass::paragraph;
    }
    CHECK_EQ(paragraphs, 1u);
}

std::string fold(std::string_view text) {
    std::string folded;
    const auto* p = reinterpret_cast<const unsigned char*>(text.data());
    for (const auto* const end = p + text.size(); p < end;) {
        const CodePoint c = decode_utf8(p, end);
        unsigned char bytes[7];
        const std::size_t n = fold_char(c.value, bytes);
        CHECK(n <= 7);
        folded.append(reinterpret_cast<const char*>(bytes), n);
        p += c.length;
    }
    return folded;
}

void folding() {
    CHECK_EQ(fold("ABCxyz019"), "abcxyz019");
    CHECK_EQ(fold("\u1E9E\u00DF"), "ssss");
    CHECK_EQ(fold("\u0130"), "i\u0307");
    CHECK_EQ(fold("\u212A"), "k");
    CHECK_EQ(fold("\uFB03"), "ffi");
    CHECK_EQ(fold("\u0416\u03A3"), "\u0436\u03C3");
    CHECK_EQ(fold("\u2019\u2010\u2011"), "'--");
    CHECK_EQ(fold("co\u00ADop"), "coop");
    CHECK_EQ(fold("\U00010400"), "\U00010428");
    for (std::uint32_t cp = 0; cp < 0x110000; ++cp) {
        if (!is_scalar(cp)) continue;
        const std::string once = fold(encode(cp));
        CHECK_EQ(fold(once), once);
        CHECK_EQ(once.empty(), cp == 0xAD);
    }
}

}  // namespace

int main() {
    every_code_point_and_every_prefix_of_it();
    malformed_sequences();
    classes();
    folding();
    CHECK(!unicode_version().empty());
    return check::result();
}
