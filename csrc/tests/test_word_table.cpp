// word_table.hpp
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include "check.hpp"
#include "hsca/text/word_table.hpp"

using namespace hsca;

namespace {

using Pair = std::pair<std::uint64_t, std::uint64_t>;

void any_words(std::size_t n, std::uint64_t seed) {
    check::Random random{seed};
    std::vector<WordTable::Entry> entries;
    std::set<Pair> used;
    while (entries.size() < n) {
        std::string s;
        for (std::size_t length = 1 + random.below(16); length; --length)
            s += static_cast<char>('a' + random.below(26));
        const WordKey key = folded_key(s);
        if (used.insert({key.low, key.high}).second) entries.push_back({key, entries.size() + 1});
    }
    const WordTable table(entries);
    for (const WordTable::Entry& entry : entries) CHECK_EQ(table[entry.key], entry.value);
    for (const auto& [word, value] : entries) {
        const WordKey other{word.low ^ 1, word.high}, longer{word.low, word.high ^ 1ull << 32};
        if (!used.count({other.low, other.high})) CHECK_EQ(table[other], 0u);
        if (!used.count({longer.low, longer.high})) CHECK_EQ(table[longer], 0u);
    }
    CHECK_EQ(table[(WordKey{0, 0})], 0u);
}

void a_word_twice_is_refused() {
    const WordTable::Entry twice[] = {{folded_key("one"), 1}, {folded_key("two"), 2}, {folded_key("One"), 3}};
    CHECK_THROWS(WordTable{twice}, std::invalid_argument);
}

}  // namespace

int main() {
    for (std::uint64_t seed = 0; seed < 20; ++seed) {
        for (const std::size_t n : {0u, 1u, 2u, 16u, 100u, 800u}) any_words(n, seed);
    }
    any_words(20'000, 99);
    a_word_twice_is_refused();
    return check::result();
}
