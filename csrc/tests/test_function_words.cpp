// function_words.hpp and perfect_table.hpp
#include <algorithm>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "check.hpp"
#include "hsca/text/function_words.hpp"

using namespace hsca;

namespace {

using Pair = std::pair<std::uint64_t, std::uint64_t>;

std::vector<unsigned char> scratch;

FoldedWord fold(std::string_view word) {
    return fold_word_slowly({reinterpret_cast<const unsigned char*>(word.data()), word.size()}, scratch);
}

// One word of each kind at least, in the order of Continuity.
constexpr std::string_view kShown[kContinuities] = {"he himself", "she hers", "i mine",     "we ourselves", "they them",
                                                    "you yours",  "it its",   "was didn't", "is doesn't"};

void every_listed_word() {
    std::set<Pair> keys;
    for (const std::string_view word : function_words()) {
        const WordKey key = fold(word).key;
        CHECK(word.size() <= 16);
        CHECK(keys.insert({key.low, key.high}).second);
        if (!is_function_word(key)) check::fail(__FILE__, __LINE__, std::string(word) + " is not found");
        CHECK(kFunctionWords[key] & kIsFunctionWord);
        CHECK(kFunctionWords[key] < kIsFunctionWord + (1u << kContinuities));
    }
    for (std::size_t kind = 0; kind < kContinuities; ++kind) {
        std::string_view rest = kShown[kind];
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find(' '), rest.size());
            CHECK_EQ(kFunctionWords[fold(rest.substr(0, end)).key], kIsFunctionWord | 1u << kind);
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    }
    for (const std::string_view word : {"the", "and", "of", "with"})
        CHECK_EQ(kFunctionWords[fold(word).key], kIsFunctionWord);
    CHECK(!is_function_word({0, 0}));

    check::Random random{4};
    const std::string_view alphabet = "etaoinshrdlu'";
    for (int round = 0; round < 200000; ++round) {
        std::string word;
        for (std::size_t n = 1 + random.below(16); n; --n) word += random.of(alphabet);
        const WordKey key = ascii_key(word);
        CHECK_EQ(is_function_word(key), keys.count({key.low, key.high}) != 0);
    }

    // The table compares a mixture of a key's halves. No short word may look like a long one, whatever the rotation.
    for (const Pair& key : keys) {
        if (!key.second) continue;
        for (unsigned turn = 0; turn < 64; ++turn) {
            const std::uint64_t both = key.first ^ (key.second << turn | (turn ? key.second >> (64 - turn) : 0));
            std::string word;
            for (unsigned i = 0; i < 64 && (both >> i & 0xFF); i += 8)
                word += static_cast<char>(static_cast<unsigned char>(both >> i));
            // Folding gives it back when it is folded UTF-8 without NUL; then only its ASCII bytes can keep it from
            // being a word.
            const bool is_ascii_word = std::all_of(word.begin(), word.end(), [](char c) {
                return static_cast<unsigned char>(c) >= 0x80 || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') ||
                       std::string_view("'-.,\x7F").find(c) != std::string_view::npos;
            });
            if (!is_ascii_word || !(fold(word).key == WordKey{both, 0}) || keys.count({both, 0})) continue;
            if (is_function_word({both, 0}))
                check::fail(__FILE__, __LINE__, word + " is taken for a longer function word");
        }
    }
}

template <std::size_t N, std::size_t Slots>
void any_words(std::uint64_t seed) {
    check::Random random{seed};
    std::array<WordKey, N> words;
    std::set<Pair> used;
    for (WordKey& word : words) {
        do {
            std::string s;
            for (std::size_t n = 1 + random.below(16); n; --n) s += static_cast<char>('a' + random.below(26));
            word = ascii_key(s);
        } while (!used.insert({word.low, word.high}).second);
    }
    PerfectWordTable<Slots> table(words);
    for (const WordKey& word : words) CHECK_EQ(table[word], 0u);
    for (std::size_t i = 0; i < N; ++i) table.set(words[i], static_cast<std::uint16_t>(i + 1));
    for (std::size_t i = 0; i < N; ++i) CHECK_EQ(table[words[i]], i + 1);
    for (const WordKey& word : words) {
        const WordKey other{word.low ^ 1, word.high}, longer{word.low, word.high ^ 1ull << 32};
        if (!used.count({other.low, other.high})) CHECK_EQ(table[other], 0u);
        if (!used.count({longer.low, longer.high})) CHECK_EQ(table[longer], 0u);
    }
}

}  // namespace

int main() {
    every_listed_word();
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        any_words<1, 16>(seed);
        any_words<100, 256>(seed);
        any_words<200, 256>(seed);
        any_words<800, 1024>(seed);
    }
    return check::result();
}
