#include <set>
#include <string>
#include <utility>

#include "check.hpp"
#include "hsca/text/words.hpp"

using namespace hsca;

namespace {

std::vector<unsigned char> scratch;

FoldedWord slowly(std::string_view word) {
    const std::vector<unsigned char> exact(word.begin(), word.end());
    return fold_word_slowly(exact, scratch);
}

// With `after` bytes of text behind the word, which must not matter, in a block of exactly that size.
bool quickly(std::string_view word, std::size_t after, WordKey& key) {
    std::vector<unsigned char> text(word.begin(), word.end());
    text.insert(text.end(), after, 0xC3);
    return fold_word_quickly(text.data(), word.size(), text.data() + text.size(), key);
}

WordKey naive_key(std::string_view folded) {
    WordKey key{0, 0};
    for (std::size_t i = 0; i < folded.size(); ++i) {
        const std::uint64_t byte = static_cast<unsigned char>(folded[i]);
        (i < 8 ? key.low : key.high) |= byte << 8 * (i % 8);
    }
    return key;
}

std::string random_word(check::Random& random, std::size_t length, std::string_view alphabet) {
    std::string word;
    while (word.size() < length) word += random.of(alphabet);
    return word;
}

void both_paths_agree() {
    check::Random random{2};
    for (std::size_t length = 1; length <= 20; ++length) {
        for (int round = 0; round < 60; ++round) {
            const std::string word = random_word(random, length, "abcxyzABCXYZ0189'-_.,");
            const FoldedWord slow = slowly(word);
            CHECK_EQ(slow.length, length);
            CHECK_EQ(slow.is_single_character, length == 1);
            CHECK(!slow.is_unspaced);
            std::string folded = word;
            for (char& c : folded) c = static_cast<char>(c | 0x20);
            if (length <= 16) {
                CHECK(slow.key == naive_key(folded));
                CHECK(slow.key == folded_key(word));
            } else {
                CHECK_EQ(slow.key.high >> 56, 0xFFu);
            }
            for (std::size_t after = 0; after <= 17; ++after) {
                WordKey key{7, 7};
                CHECK_EQ(quickly(word, after, key), length <= 16);
                if (length <= 16) CHECK(key == slow.key);
            }
        }
    }
    WordKey key;
    CHECK(!quickly("na\u00EFve", 0, key));
    CHECK(!quickly("na\u00EFve", 20, key));
    CHECK(!quickly("abcdefghijklmno\xC3", 0, key));
}

void slow_path() {
    CHECK(slowly("STRASSE").key == slowly("Stra\u00DFe").key);
    CHECK(slowly("don\u2019t").key == folded_key("don't"));
    CHECK(slowly("co\u00ADop\u00ADer\u00ADa\u00ADtion").key == folded_key("cooperation"));
    CHECK(slowly("\u00C9").is_single_character);
    CHECK(!slowly("\u00C9a").is_single_character);
    CHECK(slowly("\u4E2D\u6587").is_unspaced);
    CHECK_EQ(slowly("").length, 0u);
    // Long words: case does not matter, every byte and the length do.
    std::set<std::pair<std::uint64_t, std::uint64_t>> keys;
    for (const std::size_t length : {17u, 18u, 23u, 24u, 25u, 63u, 64u, 65u, 4095u, 4096u, 4097u}) {
        std::string word(length, 'q');
        const WordKey key = slowly(word).key;
        CHECK(slowly(std::string(length, 'Q')).key == key);
        CHECK(keys.insert({key.low, key.high}).second);
        for (const std::size_t at : {std::size_t{0}, length / 2, length - 1}) {
            word[at] = 'z';
            const WordKey other = slowly(word).key;
            CHECK(keys.insert({other.low, other.high}).second);
            word[at] = 'q';
        }
    }
}

std::string naive_stem(std::string word) {
    if (word.size() > 16) return word;
    const auto ends_with = [&word](std::string_view s) {
        return word.size() >= s.size() && word.substr(word.size() - s.size()) == s;
    };
    if (word.size() >= 5 && ends_with("'s")) word.resize(word.size() - 2);
    for (const std::string_view suffix : {"ing", "ed", "es", "ly", "s", "e"}) {
        if (ends_with(suffix) && word.size() - suffix.size() >= 4) return word.substr(0, word.size() - suffix.size());
    }
    return word;
}

void stems() {
    const std::string_view suffixes[] = {"",      "ing", "ed",   "es", "ly", "s", "e", "'s",
                                         "ing's", "eds", "es's", "ng", "d",  "g", "y", "'"};
    check::Random random{3};
    for (std::size_t length = 1; length <= 17; ++length) {
        for (const std::string_view suffix : suffixes) {
            for (int round = 0; round < 20; ++round) {
                const std::string word = random_word(random, length, "inglyesd'abc") + std::string(suffix);
                const FoldedWord folded = slowly(word);
                const WordKey found = stem(folded.key, folded.length);
                if (word.size() > 16) {
                    CHECK(found == folded.key);
                } else if (!(found == naive_key(naive_stem(word)))) {
                    check::fail(__FILE__, __LINE__, "stem of " + word + " is not " + naive_stem(word));
                }
            }
        }
    }
}

}  // namespace

int main() {
    both_paths_agree();
    slow_path();
    stems();
    for (std::size_t n = 0; n <= 16; ++n) CHECK(kKeyMask[n] == naive_key(std::string(n, '\xFF')));
    return check::result();
}
