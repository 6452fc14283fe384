// Tokens, keywords and gating over texts: numbers by hand, and malformed bytes that must do no harm.
#include <string>
#include <vector>

#include "check.hpp"
#include "hsca/ranking/gating.hpp"
#include "hsca/ranking/keywords.hpp"
#include "hsca/ranking/tokens.hpp"

using namespace hsca;

namespace {

void tokens() {
    CHECK_EQ(estimate_tokens("", TokenRule::host), 0);
    CHECK_EQ(estimate_tokens("abcde", TokenRule::host), 2);
    CHECK_EQ(estimate_tokens("\xE6\xBC\xA2\xE5\xAD\x97", TokenRule::host), 2);  // two Han characters
    CHECK_EQ(estimate_tokens("\xD0\x96", TokenRule::host), 1);
    CHECK_EQ(estimate_tokens("\xF0\x9F\x98\x80", TokenRule::host), 1);  // two UTF-16 units
    CHECK_EQ(estimate_tokens("", TokenRule::sidecar), 1);
    CHECK_EQ(estimate_tokens("123456789", TokenRule::sidecar), 2);
    CHECK_EQ(estimate_tokens("", TokenRule::fitted), 0);
    CHECK_EQ(estimate_tokens(" ", TokenRule::fitted), 1);
    const auto counts = count_features("Two words, 12 \xC3\xA9 end");
    CHECK_EQ(counts[kLetters], 11u);
    CHECK_EQ(counts[kWords], 4u);
    CHECK_EQ(counts[kPunctuation], 1u);
    CHECK_EQ(counts[kDigits], 2u);
    CHECK_EQ(counts[kLatin], 1u);
}

void keywords() {
    const auto found = extract_keywords("The token, the TOKEN budget_2 of it", TermKind::unicode, 3);
    CHECK(found == std::vector<std::string>({"the", "token", "budget_2"}));
    const std::string_view wanted[] = {"token", "Token", "budget"}, texts[] = {"a token", "budget token", ""};
    double out[3];
    CHECK(keyword_coverage(KeywordSet(wanted, TermKind::ascii), texts, 2, nullptr, out));
    CHECK_EQ(out[0], 0.5);
    CHECK_EQ(out[1], 1.0);
    CHECK_EQ(out[2], 0.0);
    CHECK_THROWS(keyword_coverage(KeywordSet(wanted, TermKind::ascii), texts, 1, nullptr, std::span(out, 2)),
                 std::invalid_argument);
}

void gating() {
    PatternScanner scanner;
    const GatingTerms terms;
    const auto cold = gating_signals("", {}, {}, terms, scanner);
    CHECK_EQ(cold.score, 0.35);
    const double known[] = {0.9, 0.9, 0.9}, turns[] = {0.9};
    const auto saturated = gating_signals("hello", known, turns, terms, scanner);
    CHECK_EQ(saturated.saturation, 1.0);
    CHECK_EQ(saturated.repetition, 0.0);
    const auto counts = scanner.scan("see src/a.py and b/c at x.go:3", false);
    CHECK_EQ(counts[GatingPattern::file_path], 2u);
    CHECK_EQ(counts[GatingPattern::stack_trace], 1u);
    CHECK_EQ(strip_white_space("\xC2\xA0 \tx y\xE3\x80\x80\n"), "x y");
    CHECK_EQ(strip_white_space("\xC2\xA0"), "");
    CHECK_EQ(strip_white_space("\x80\x80\x80\x80\x80"), "\x80\x80\x80\x80\x80");
}

void any_bytes() {
    check::Random random{9};
    PatternScanner scanner;
    constexpr std::string_view kBytes = "abgoHEAD /.-_(`$:\n\t19x\xC3\xA9\xE6\xBC\xA2\xF0\x9F\x80\xFF";
    for (int round = 0; round < 20'000; ++round) {
        std::string text;
        for (std::size_t n = random.below(60); n > 0; --n) text += random.of(kBytes);
        for (const TokenRule rule : {TokenRule::host, TokenRule::sidecar, TokenRule::fitted}) {
            CHECK(estimate_tokens(text, rule) >= 0);
        }
        for (const TermKind kind : {TermKind::ascii, TermKind::unicode}) {
            const auto found = extract_keywords(text, kind, 1);
            const std::vector<std::string_view> views(found.begin(), found.end());
            const std::string_view texts[] = {text};
            double out[1];
            CHECK(keyword_coverage(KeywordSet(views, kind), texts, 1, nullptr, out));
            CHECK(out[0] == (found.empty() ? 0.0 : 1.0));
        }
        GatingTerms terms;
        terms.strict = round % 2 == 0;
        const auto signals = gating_signals(text, {}, {}, terms, scanner);
        CHECK(signals.score >= 0.0 && signals.score <= 1.0);
    }
}

}  // namespace

int main() {
    tokens();
    keywords();
    gating();
    any_bytes();
    return check::result();
}
