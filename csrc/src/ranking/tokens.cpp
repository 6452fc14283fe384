#include "hsca/ranking/tokens.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "hsca/text/unicode.hpp"

namespace hsca {

namespace {

// By tools/validate_token_estimates.py, in the order of TokenFeature.
constexpr std::array<double, kTokenFeatures> kCoefficients = {0.088, 0.728, 0.731, 0.883, 2.580, 0.963,
                                                              0.464, 0.780, 1.062, 0.989, 2.089};

bool in(std::uint32_t c, std::uint32_t first, std::uint32_t last) { return c - first <= last - first; }

// End of the run of ASCII bytes that starts at `text`.
const unsigned char* skip_ascii(const unsigned char* text, const unsigned char* end) {
    constexpr std::uint64_t kHighBits = 0x8080808080808080ull;
    while (end - text >= 32) {
        std::uint64_t words[4];
        std::memcpy(words, text, 32);
        if ((words[0] | words[1] | words[2] | words[3]) & kHighBits) break;
        text += 32;
    }
    while (text != end && *text < 0x80) ++text;
    return text;
}

}  // namespace

CharacterCounts count_characters(std::string_view text) noexcept {
    CharacterCounts counts;
    const auto* at = reinterpret_cast<const unsigned char*>(text.data());
    const auto* const end = at + text.size();
    while (true) {
        const auto* const high = skip_ascii(at, end);
        counts.code_points += static_cast<std::size_t>(high - at);
        at = high;
        if (at == end) break;
        while (at != end && *at >= 0x80) {
            const CodePoint c = decode_utf8(at, end);
            at += c.length;
            ++counts.code_points;
            counts.utf16_units += c.value >= 0x10000;  // on top of one each
            counts.has_cjk |= in(c.value, 0x4E00, 0x9FAF) || in(c.value, 0x3041, 0x3096) ||
                              in(c.value, 0x30A1, 0x30FA) || in(c.value, 0xAC00, 0xD7A3);
            counts.has_mid |= in(c.value, 0x0400, 0x04FF) || in(c.value, 0x0590, 0x06FF);
        }
    }
    counts.utf16_units += counts.code_points;
    return counts;
}

std::array<std::size_t, kTokenFeatures> count_features(std::string_view text) noexcept {
    std::array<std::size_t, kTokenFeatures> counts{};
    const auto* const bytes = reinterpret_cast<const unsigned char*>(text.data());
    std::uint8_t in_word = 0;  // was the last byte part of a word?
    for (std::size_t begin = 0; begin < text.size();) {
        // Few enough bytes for counters of a byte, which is what makes the loops vectors of sixteen.
        constexpr std::size_t kBlock = 240;
        const std::size_t n = std::min(kBlock, text.size() - begin);
        const unsigned char* const block = bytes + begin;
        std::uint8_t is_word[kBlock + 1];
        is_word[0] = in_word;
        std::uint8_t letters = 0, words = 0, printing = 0, digits = 0, high = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const std::uint8_t c = block[i];
            const std::uint8_t letter = static_cast<std::uint8_t>((c | 0x20) - 'a') < 26;
            is_word[i + 1] = letter | (c >= 0x80);
            letters = static_cast<std::uint8_t>(letters + letter);
            printing = static_cast<std::uint8_t>(printing + (static_cast<std::uint8_t>(c - 0x21) < 0x5E));
            digits = static_cast<std::uint8_t>(digits + (static_cast<std::uint8_t>(c - '0') < 10));
            high |= c;
        }
        for (std::size_t i = 0; i < n; ++i) {
            words = static_cast<std::uint8_t>(words + (is_word[i + 1] & (is_word[i] ^ 1)));
        }
        counts[kLetters] += letters;
        counts[kWords] += words;
        counts[kPunctuation] += static_cast<std::size_t>(printing - letters - digits);
        counts[kDigits] += digits;
        if (high >= 0x80) {
            for (std::size_t i = 0; i < n; ++i) {
                const unsigned char c = block[i];
                counts[kLatin] += in(c, 0xC2, 0xCD);
                counts[kGreek] += in(c, 0xCE, 0xCF);
                counts[kCyrillic] += in(c, 0xD0, 0xD4);
                counts[kTwoByte] += in(c, 0xD5, 0xDF);
                counts[kCjk] += in(c, 0xE3, 0xED);
                counts[kThreeByte] += in(c, 0xE0, 0xE2) || in(c, 0xEE, 0xEF);
                counts[kFourByte] += in(c, 0xF0, 0xF4);
            }
        }
        in_word = is_word[n];
        begin += n;
    }
    return counts;
}

std::span<const double> fitted_coefficients() noexcept { return kCoefficients; }

std::int64_t estimate_tokens(std::string_view text, TokenRule rule) noexcept {
    if (rule == TokenRule::fitted) {
        if (text.empty()) return 0;
        const auto counts = count_features(text);
        double tokens = 0.0;
        for (std::size_t i = 0; i < kTokenFeatures; ++i) tokens += kCoefficients[i] * static_cast<double>(counts[i]);
        return std::max<std::int64_t>(1, static_cast<std::int64_t>(std::floor(tokens + 0.5)));
    }
    const CharacterCounts counts = count_characters(text);
    if (rule == TokenRule::sidecar) return std::max<std::int64_t>(1, static_cast<std::int64_t>(counts.code_points / 4));
    const double chi = counts.has_cjk ? 1.6 : counts.has_mid ? 2.5 : 4.0;
    return static_cast<std::int64_t>(std::ceil(static_cast<double>(counts.utf16_units) / chi));
}

bool estimate_tokens(std::span<const std::string_view> texts, TokenRule rule, std::size_t threads, Stop::Poll poll,
                     std::span<std::int32_t> out) {
    if (out.size() != texts.size()) throw std::invalid_argument("estimate_tokens: one element a text is needed");
    Stop stop(poll);
    return parallel_for(texts.size(), threads, 256, stop, [&](std::size_t, std::size_t begin, std::size_t end) {
        constexpr std::int64_t kMost = std::numeric_limits<std::int32_t>::max();
        for (std::size_t i = begin; i < end; ++i) {
            out[i] = static_cast<std::int32_t>(std::min(kMost, estimate_tokens(texts[i], rule)));
        }
    });
}

}  // namespace hsca
