// function_words.hpp
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

// One word of each kind at least, in the order of Continuity.
constexpr std::string_view kShown[kContinuities] = {"he himself", "she hers", "i mine",     "we ourselves", "they them",
                                                    "you yours",  "it its",   "was didn't", "is doesn't"};

void every_listed_word() {
    const WordTable table(function_word_entries());
    std::set<Pair> keys;
    for (const std::string_view word : function_words()) {
        const WordKey key = folded_key(word);
        CHECK(word.size() <= 16);
        CHECK(keys.insert({key.low, key.high}).second);
        if (!is_function_word(key)) check::fail(__FILE__, __LINE__, std::string(word) + " is not found");
        CHECK(table[key] & kIsFunctionWord);
        CHECK(table[key] < kIsFunctionWord + (1u << kContinuities));
    }
    for (std::size_t kind = 0; kind < kContinuities; ++kind) {
        std::string_view rest = kShown[kind];
        while (!rest.empty()) {
            const std::size_t end = std::min(rest.find(' '), rest.size());
            CHECK_EQ(table[folded_key(rest.substr(0, end))], kIsFunctionWord | 1u << kind);
            rest.remove_prefix(std::min(end + 1, rest.size()));
        }
    }
    for (const std::string_view word : {"the", "and", "of", "with"}) CHECK_EQ(table[folded_key(word)], kIsFunctionWord);
    CHECK(!is_function_word({0, 0}));

    check::Random random{4};
    const std::string_view alphabet = "etaoinshrdlu'";
    for (int round = 0; round < 200000; ++round) {
        std::string word;
        for (std::size_t n = 1 + random.below(16); n; --n) word += random.of(alphabet);
        const WordKey key = folded_key(word);
        CHECK_EQ(is_function_word(key), keys.count({key.low, key.high}) != 0);
    }
}

}  // namespace

int main() {
    every_listed_word();
    return check::result();
}
