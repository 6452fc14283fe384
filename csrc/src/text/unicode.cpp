#include "hsca/text/unicode.hpp"

#include <cstring>

namespace hsca {

namespace {
#include "unicode_tables.inc"

constexpr std::uint32_t kReplacement = 0xFFFD;
}  // namespace

std::size_t encode_utf8(std::uint32_t cp, unsigned char* out) noexcept {
    const auto tail = [](std::uint32_t bits) { return static_cast<unsigned char>(0x80 | (bits & 0x3F)); };
    if (cp < 0x80) {
        out[0] = static_cast<unsigned char>(cp);
        return 1;
    }
    if (cp < 0x800) {
        out[0] = static_cast<unsigned char>(0xC0 | (cp >> 6));
        out[1] = tail(cp);
        return 2;
    }
    if (cp < 0x10000) {
        out[0] = static_cast<unsigned char>(0xE0 | (cp >> 12));
        out[1] = tail(cp >> 6);
        out[2] = tail(cp);
        return 3;
    }
    out[0] = static_cast<unsigned char>(0xF0 | (cp >> 18));
    out[1] = tail(cp >> 12);
    out[2] = tail(cp >> 6);
    out[3] = tail(cp);
    return 4;
}

CodePoint decode_utf8(const unsigned char* text, const unsigned char* end) noexcept {
    const std::uint32_t lead = text[0];
    if (lead < 0x80) return {lead, 1};
    const auto available = static_cast<std::size_t>(end - text);
    const auto continues = [&](std::size_t i) { return i < available && (text[i] & 0xC0) == 0x80; };
    const auto bits = [&](std::size_t i) { return static_cast<std::uint32_t>(text[i] & 0x3F); };
    if (lead >= 0xC2 && lead < 0xE0 && continues(1)) return {((lead & 0x1F) << 6) | bits(1), 2};
    if (lead >= 0xE0 && lead < 0xF0 && continues(1) && continues(2)) {
        const std::uint32_t cp = ((lead & 0x0F) << 12) | (bits(1) << 6) | bits(2);
        if (cp >= 0x800 && (cp < 0xD800 || cp > 0xDFFF)) return {cp, 3};
    }
    if (lead >= 0xF0 && lead < 0xF5 && continues(1) && continues(2) && continues(3)) {
        const std::uint32_t cp = ((lead & 0x07) << 18) | (bits(1) << 12) | (bits(2) << 6) | bits(3);
        if (cp >= 0x10000 && cp < 0x110000) return {cp, 4};
    }
    return {kReplacement, 1};
}

CharClass char_class(std::uint32_t cp) noexcept {
    return static_cast<CharClass>(kClass[kClassBlock[cp >> 7] * 128u + (cp & 127u)]);
}

std::size_t fold_char(std::uint32_t cp, unsigned char* out) noexcept {
    const std::uint32_t row = kFold[kFoldBlock[cp >> 7] * 128u + (cp & 127u)];
    if (row == 0) return encode_utf8(cp, out);
    const std::uint8_t* entry = kFoldedBytes + row * 8u;
    std::memcpy(out, entry + 1, 7);
    return entry[0];
}

std::string_view unicode_version() noexcept { return kUnicodeVersion; }

}  // namespace hsca
