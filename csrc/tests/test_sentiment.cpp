// sentiment.hpp: numbers worked out by hand from the rules, and what must hold for any bytes.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "hsca/text/sentiment.hpp"
#include "hsca/text/token_masks.hpp"

using namespace hsca;

namespace {

double normalised(double sum) { return sum / std::sqrt(sum * sum + 15.0); }

bool is_near(double a, double b) { return std::fabs(a - b) < 1e-12; }

// From a buffer of exactly this size, so that a sanitizer sees a byte too many.
double compound(SentimentScorer& scorer, std::string_view text) {
    const std::vector<char> exact(text.begin(), text.end());
    return scorer.compound({exact.data(), exact.size()});
}

struct Example {
    std::string_view text;
    double sum;
};

// good 1.9, bad -2.5, kind 2.4, no -1.2, doubt -1.5, ok 1.2, ":)" 2.0, grinning 1.5
constexpr double kBoost = 0.293, kCapitals = 0.733, kNot = -0.74;
const Example kExamples[] = {
    {"", 0.0},
    {" \t\n", 0.0},
    {"the table", 0.0},
    {"good", 1.9},
    {"...good!", 1.9 + 0.292},
    {"good!!!!!!!", 1.9 + 4 * 0.292},
    {"bad?", -2.5},
    {"bad??", -2.5 - 2 * 0.18},
    {"bad?????", -2.5 - 0.96},
    {"!!!! table", 0.0},
    {"not good", 1.9 * kNot},
    {"not so very good", ((1.9 + kBoost) + kBoost * 0.95) * kNot},
    {"very good", 1.9 + kBoost},
    {"very bad", -2.5 - kBoost},
    {"slightly good", 1.9 - kBoost},
    {"a GOOD day", 1.9 + kCapitals},
    {"GOOD DAY", 1.9},
    {"VERY good", 1.9 + kBoost + kCapitals},
    {"isn't a good", 1.9 * kNot},
    {"ISN'T it good", 1.9 * kNot},
    {"never so good", (1.9 + kBoost) * 1.25},
    {"without doubt good", -1.5 * kNot + 1.9},
    {"least good", 1.9 * kNot},
    {"at least good", 1.9},
    {"kind of good", 1.9},
    {"it is kind of good", 1.9 - kBoost},
    {"no table", -1.2},
    {"no good", 1.9 * kNot},
    {"no, good", 1.9},  // "no," has two letters and keeps its comma
    {"no table or good", -1.2 + 1.9 * kNot},
    {"this is the kiss of death", -1.5 - 1.5},
    {"good but bad", 1.9 * 0.5 - 2.5 * 1.5},
    {"good good BUT good", 1.9 * 0.5 * 2 + (1.9 * 1.5)},
    {":)", 2.0},
    {"\xF0\x9F\x98\x80", 1.5},                 // grinning face
    {"ok\xF0\x9F\x98\x80 ok", 1.5 + 2 * 1.2},  // a space comes before
    {"\xF0\x9F\x98\x80table", 1.5},            // none after: "facetable"
    {"good\xC2\xA0"
     "bad",
     1.9 - 2.5},  // no-break space
    {"good\xE3\x80\x80"
     "bad",
     1.9 - 2.5},  // ideographic space
    {"good\x1C"
     "bad",
     1.9 - 2.5},  // file separator
    {"good\x0E"
     "bad",
     0.0},                                  // shift out is no white space
    {"\xE2\x80\x9Cgood\xE2\x80\x9D", 0.0},  // curly quotes are not stripped
    {"\xE2\x84\xAAind", 2.4},               // the Kelvin sign is a K
    {"good\xFF", 0.0},
    {"\xC3\x89T\xC3\x89 GOOD", 1.9},  // all of it in capitals
    {"\xC3\xA9t\xC3\xA9 GOOD", 1.9 + kCapitals},
};

void examples() {
    SentimentScorer scorer;
    for (const Example& example : kExamples) {
        const double found = compound(scorer, example.text);
        if (!is_near(found, normalised(example.sum))) {
            check::fail(__FILE__, __LINE__,
                        std::string(example.text) + ": " + check::show(found) + ", not " +
                            check::show(normalised(example.sum)));
        }
    }
}

// The same token at every place of a window, with every length before and after it.
void places() {
    SentimentScorer scorer;
    const double good = normalised(1.9), both = normalised(1.9 * kNot);
    for (std::size_t before = 0; before < 200; ++before) {
        const std::string filler(before, 'x'), dots(before, '.');
        CHECK(is_near(compound(scorer, filler + " good"), good));
        CHECK(is_near(compound(scorer, dots + "good" + dots), good));
        CHECK(is_near(compound(scorer, filler + " not good " + filler), both));
        CHECK(is_near(compound(scorer, std::string(before, ' ') + "not " + dots + "good"), both));
        CHECK(is_near(compound(scorer, filler +
                                           "\xE2\x80\x83"
                                           "good\xE2\x80\x83" +
                                           filler),
                      good));
        CHECK(is_near(compound(scorer, filler + " \xF0\x9F\x98\x80"), normalised(1.5)));
        CHECK_EQ(compound(scorer, filler + "good"), before ? 0.0 : compound(scorer, "good"));
        // Rules reach over the ends of what is kept at a time.
        std::string words;
        for (std::size_t i = 0; i < 5 * before; ++i) words += "a ";
        CHECK(is_near(compound(scorer, words + "not very good"), normalised((1.9 + kBoost) * kNot)));
        CHECK(is_near(compound(scorer, words + "kind of"), 0.0));
        CHECK(is_near(compound(scorer, words + "no good b b b good"), normalised(1.9 * kNot + 1.9)));
    }
}

void masks() {
    check::Random random{3};
    unsigned char window[64];
    for (int round = 0; round < 2000; ++round) {
        for (unsigned char& byte : window) byte = static_cast<unsigned char>(random());
        const TokenMasks a = token_masks(window), b = token_masks_scalar(window);
        CHECK(a.space == b.space && a.core == b.core && a.high == b.high);
    }
}

std::string random_text(check::Random& random) {
    static const std::string_view pieces[] = {
        " ",
        " ",
        " ",
        " ",
        "  ",
        "\n",
        "\t",
        "good",
        "bad",
        "Good",
        "BAD",
        "not",
        "NOT",
        "very",
        "VERY",
        "never",
        "so",
        "this",
        "without",
        "doubt",
        "least",
        "at",
        "kind",
        "of",
        "no",
        "or",
        "nor",
        "but",
        "But",
        "but",
        "the",
        "bomb",
        "shit",
        "bus",
        "stop",
        "yeah",
        "right",
        "kiss",
        "death",
        "to",
        "die",
        "for",
        "isn't",
        "n't",
        "!",
        "?",
        ".",
        ",",
        "'",
        ":)",
        ":D",
        "<3",
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "\xF0\x9F\x98\x80",
        "\xE2\x9D\xA4\xEF\xB8\x8F",
        "\xC2\xA9",
        "\xE2\x84\xAA",
        "\xC2\xA0",
        "\xE2\x80\x83",
        "\xE2\x80",
        "\xF0\x9F",
        "\xFF",
        "\xC3\xA9",
        "\xC3\x89",
        "\xE6\xBC\xA2",
        "\x80",
        "great",
        "1.9",
    };
    std::string text;
    const bool is_noise = random.below(4) == 0;
    for (std::size_t n = random.below(random.below(20) ? 60 : 2000); n; --n) {
        if (is_noise) {
            text += static_cast<char>(random());
        } else {
            text += random.of(pieces);
            if (random.below(3)) text += ' ';
        }
    }
    return text;
}

double emphasis(std::string_view text) {
    std::size_t exclamations = 0, questions = 0;
    for (const char c : text) {
        exclamations += c == '!';
        questions += c == '?';
    }
    return 0.292 * static_cast<double>(std::min<std::size_t>(exclamations, 4)) +
           (questions < 2    ? 0.0
            : questions <= 3 ? 0.18 * static_cast<double>(questions)
                             : 0.96);
}

// explain() gives the same number, its valences make it up, and its spans are tokens of the text.
void explanations() {
    check::Random random{11};
    SentimentScorer reused;
    std::vector<SentimentToken> tokens;
    for (int round = 0; round < 4000; ++round) {
        const std::string text = random_text(random);
        const double found = compound(reused, text);
        CHECK(found >= -1.0 && found <= 1.0);
        CHECK_EQ(reused.explain(text, tokens), found);
        SentimentScorer fresh;
        CHECK_EQ(compound(fresh, text), found);
        double sum = 0.0;
        std::size_t last = 0;
        for (const SentimentToken& token : tokens) {
            sum += token.valence;
            CHECK(token.valence != 0.0);
            CHECK(token.begin < token.end && token.end <= text.size());
            CHECK(token.begin >= last);
            last = token.begin;
        }
        if (sum != 0.0) sum += sum > 0.0 ? emphasis(text) : -emphasis(text);
        CHECK(is_near(found, normalised(sum)));
    }
    const std::string text = "So \xF0\x9F\x98\x80, NOT bad\xE2\x9D\xA4 (good)\xE2\x84\xAA kind";
    const double value = reused.explain(text, tokens);
    CHECK(value > 0.0);
    std::vector<std::string> found;
    for (const SentimentToken& token : tokens) found.push_back(text.substr(token.begin, token.end - token.begin));
    // "heart" is the description's second word.
    const std::vector<std::string> expected = {"\xF0\x9F\x98\x80", "bad", "\xE2\x9D\xA4", "kind"};
    CHECK(found == expected);
}

// "but" among many values has a way of its own: it must not differ from the plain one.
void many_values_around_but() {
    static const std::string_view words[] = {"good",     "bad",          "great", "happy",   "death",
                                             "love",     "hate",         "ok",    "fine",    "very good",
                                             "not good", "slightly bad", "GOOD",  "VERY bad"};
    check::Random random{5};
    SentimentScorer scorer;
    std::vector<SentimentToken> plain, weighed;
    for (int round = 0; round < 300; ++round) {
        const std::size_t n = 1 + random.below(300), but = random.below(n);
        std::string with, without;
        std::size_t before = 0;
        for (std::size_t i = 0; i < n; ++i) {
            const std::string_view word = random.of(words);
            if (i == but) before = with.size();
            with += i == but ? "x x x but x x x " : "";
            without += i == but ? "x x x xxx x x x " : "";
            with += word;
            without += word;
            with += " x x x ";
            without += " x x x ";
        }
        scorer.explain(without, plain);
        scorer.explain(with, weighed);
        CHECK_EQ(plain.size(), weighed.size());
        std::vector<double> values;
        for (const SentimentToken& token : plain) values.push_back(token.valence);
        for (std::size_t j = 0; j < values.size(); ++j) {
            std::size_t first = 0;
            while (values[first] != values[j]) ++first;
            values[first] *= plain[first].begin < before ? 0.5 : 1.5;
        }
        for (std::size_t j = 0; j < values.size(); ++j) CHECK_EQ(weighed[j].valence, values[j]);
    }
}

double seconds(SentimentScorer& scorer, const std::string& text) {
    double best = std::numeric_limits<double>::infinity();
    for (int round = 0; round < 5; ++round) {
        const auto begin = std::chrono::steady_clock::now();
        const double found = scorer.compound(text);
        const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
        CHECK(found >= -1.0 && found <= 1.0);
        best = std::min(best, took.count());
    }
    return best;
}

std::string repeated(std::string_view piece, std::size_t size) {
    std::string text;
    while (text.size() < size) text += piece;
    return text;
}

// Sixteen times the text may take sixteen times as long, with room for a logarithm and a busy machine; not its square.
void linear_time() {
    SentimentScorer scorer;
    for (const std::string_view piece :
         {"good but not bad ", "GOOD ", "x", ".", "good", " ", "\xF0\x9F\x98\x80", "\xE2\x80\x83", "\xE2\x80", "n'",
          "NOT GOOD'", "!?", "great good bad happy death love hate but very good "}) {
        const double small = seconds(scorer, repeated(piece, 1u << 17)),
                     large = seconds(scorer, repeated(piece, 1u << 21));
        if (large > 16 * 6 * small + 0.01) {
            check::fail(__FILE__, __LINE__, check::show(large / small) + " times as long for " + std::string(piece));
        }
    }
}

void batches() {
    const std::string_view texts[] = {"good", "", "bad"};
    std::vector<double> out(3, 9.0), few(2);
    sentiment_compounds(texts, out);
    CHECK(is_near(out[0], normalised(1.9)) && out[1] == 0.0 && is_near(out[2], normalised(-2.5)));
    CHECK_THROWS(sentiment_compounds(texts, few), std::invalid_argument);
    sentiment_compounds({}, {});
}

}  // namespace

int main() {
    examples();
    places();
    masks();
    explanations();
    many_values_around_but();
    linear_time();
    batches();
    return check::result();
}
