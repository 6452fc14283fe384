// lexicon.hpp -- every word that some layer has a list for, in one table, and cues of several words as a trie over the
// numbers of their words: one probe a word finds function words, order classes and cues alike.
//
// A cue is a run of words, listed by one or more categories, each with a weight (in thousandths, so that sums are
// exact) and conditions of its own. Reading a sentence from the left, a category takes the longest of its cues that
// starts at a word and whose conditions hold, and goes on after it: its cues do not overlap, and a longer one hides the
// shorter ones inside it. Categories do not see each other's cues.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "hsca/text/sentence_words.hpp"
#include "hsca/text/word_table.hpp"

namespace hsca {

enum class CueAt : std::uint8_t { any, start, end };           // where in the sentence
enum class CueIn : std::uint8_t { any, question, statement };  // in what kind of sentence

struct Cue {
    std::string_view text;
    std::size_t category;
    std::int32_t weight;  // thousandths
    CueAt at;
    CueIn in;
};

// The folded words of a cue. Throws std::invalid_argument for none and for more than Lexicon::kMaxCueWords.
std::vector<WordKey> cue_words(std::string_view text);

class Lexicon {
  public:
    static constexpr std::size_t kMaxCategories = 64;
    static constexpr std::size_t kMaxCueWords = 8;
    static constexpr std::size_t kMaxWords = 0xFFFF;
    static constexpr std::int32_t kMaxWeight = 1'000'000;

    // What a category makes of a cue.
    struct Use {
        std::uint16_t category;
        std::uint8_t places;  // bits by place_of(): where it may start
        bool is_only_at_end;  // of the sentence
        std::int32_t weight;
    };

    // What a sentence is to the conditions of cues.
    struct Setting {
        std::size_t n_openings;  // words at which a cue still starts the sentence
        bool is_question;
    };

    // Throws std::invalid_argument for a cue without words, with more than kMaxCueWords, or of an unknown category, and
    // for more than kMaxWords different words.
    Lexicon(std::span<const Cue> cues, std::size_t n_categories);

    // Value of a word: its facts (SentenceWord) below, the number of the cue word above bit 32.
    const WordTable& words() const noexcept { return words_; }
    std::size_t n_categories() const noexcept { return n_categories_; }

    // Calls visit(use, first, last) for every use of a cue in a sentence, with the numbers of its first and last word.
    template <class Visit>
    void match(std::span<const SentenceWord> sentence, const Setting& setting, Visit&& visit) const {
        // Hardly any word starts a cue that is there: most are told by the two after it alone, without a branch.
        std::array<std::uint16_t, kMaxSentenceWords + 1> candidates;
        std::size_t n_candidates = 0;
        const std::size_t n = sentence.size();
        unsigned pair = n > 1 ? pair_roles(sentence[0].cue_word, sentence[1].cue_word) : 0;
        for (std::size_t i = 0; i < n; ++i) {
            const unsigned next_pair = i + 2 < n ? pair_roles(sentence[i + 1].cue_word, sentence[i + 2].cue_word) : 0;
            const unsigned longer = (pair & kWhole) | ((pair & kOpens) >> 1 & next_pair >> 2);
            pair = next_pair;
            const First& first = first_[sentence[i].cue_word];
            const unsigned place = place_of(i < setting.n_openings, setting.is_question);
            candidates[n_candidates] = static_cast<std::uint16_t>(i | longer << kLongerBit);
            n_candidates += (((first.longer & (0u - longer)) | first.alone) >> place) & 1;
        }
        if (n_candidates == 0) return;
        std::array<std::uint32_t, kMaxCategories> free_from{};
        for (std::size_t c = 0; c < n_candidates; ++c) {
            const std::size_t i = candidates[c] & ((1u << kLongerBit) - 1);
            const First& first = first_[sentence[i].cue_word];
            const unsigned place = place_of(i < setting.n_openings, setting.is_question);
            if (candidates[c] >> kLongerBit) {
                match_longest(sentence, i, place, first.node, free_from, visit);
                continue;
            }
            // The word alone, which hides no other.
            for (const Use& use : uses_of(nodes_[first.node])) {
                if (is_legal(use, place, i + 1 == n) & (free_from[use.category] <= i)) visit(use, i, i);
            }
        }
    }

  private:
    static constexpr unsigned kLongerBit = 15;  // of a candidate, above the number of its word
    static_assert(kMaxSentenceWords < 1u << kLongerBit);

    // Where a cue starts, as the number of a bit.
    static unsigned place_of(bool is_opening, bool is_question) noexcept {
        return static_cast<unsigned>(is_opening) | static_cast<unsigned>(is_question) << 1;
    }
    static std::uint8_t places_of(CueAt at, CueIn in) noexcept;
    static bool is_legal(const Use& use, unsigned place, bool is_at_end) noexcept {
        return (use.places >> place & 1) & (!use.is_only_at_end | is_at_end);
    }

    // What two neighbouring words may be to some cue, as bits: all of it, the first two of more, the second and third.
    // A filter: takes a few other pairs for such.
    static constexpr unsigned kWhole = 1, kOpens = 2, kGoesOn = 4;
    static constexpr unsigned kPairBits = 14;
    static std::uint32_t pair_hash(std::uint16_t first, std::uint16_t second) noexcept {
        return (first * 0x9E3779B1u ^ second * 0x85EBCA77u) >> (32 - kPairBits);
    }
    unsigned pair_roles(std::uint16_t first, std::uint16_t second) const noexcept {
        return pairs_[pair_hash(first, second)];
    }

    struct First {                // by the number of a word; bits by place_of()
        std::uint32_t node = 0;   // of the trie, 0 where the word starts no cue
        std::uint8_t alone = 0;   // where the word itself may be one
        std::uint8_t longer = 0;  // where a cue of more words may start
    };
    struct Node {
        std::uint32_t uses;
        std::uint32_t n_uses;
        bool has_children;
    };
    struct Edge {  // of an open table: parent and word, 0 for a free slot
        std::uint64_t from;
        std::uint32_t to;
    };

    std::span<const Use> uses_of(const Node& node) const noexcept { return {uses_.data() + node.uses, node.n_uses}; }

    // Each category's longest cue from word i on, given that there may be one of several words.
    template <class Visit>
    void match_longest(std::span<const SentenceWord> sentence, std::size_t i, unsigned place, std::uint32_t node,
                       std::array<std::uint32_t, kMaxCategories>& free_from, Visit&& visit) const {
        struct Found {
            std::uint32_t node;
            std::uint32_t last;
        };
        std::array<Found, kMaxCategories> longest;
        std::uint64_t touched = 0;
        for (std::size_t j = i; node; node = child(node, sentence[j].cue_word)) {
            for (const Use& use : uses_of(nodes_[node])) {
                if (free_from[use.category] > i || !is_legal(use, place, j + 1 == sentence.size())) continue;
                longest[use.category] = {node, static_cast<std::uint32_t>(j)};
                touched |= 1ull << use.category;
            }
            if (!nodes_[node].has_children || ++j == sentence.size()) break;
        }
        for (; touched; touched &= touched - 1) {
            const auto category = static_cast<std::size_t>(std::countr_zero(touched));
            const std::size_t last = longest[category].last;
            free_from[category] = longest[category].last + 1;
            for (const Use& use : uses_of(nodes_[longest[category].node])) {
                if (use.category == category && is_legal(use, place, last + 1 == sentence.size())) visit(use, i, last);
            }
        }
    }

    static std::uint64_t edge_key(std::uint32_t node, std::uint16_t word) noexcept {
        return std::uint64_t{node} << 16 | word;
    }
    std::size_t edge_slot(std::uint64_t key) const noexcept {
        return mix(key * 0x9E3779B97F4A7C15ull) & (edges_.size() - 1);
    }

    // 0 where there is none.
    std::uint32_t child(std::uint32_t node, std::uint16_t word) const noexcept {
        const std::uint64_t key = edge_key(node, word);
        for (std::size_t slot = edge_slot(key);; slot = (slot + 1) & (edges_.size() - 1)) {
            if (edges_[slot].from == key) return edges_[slot].to;
            if (!edges_[slot].from) return 0;
        }
    }

    std::size_t n_categories_;
    std::vector<First> first_;
    std::array<std::uint8_t, 1u << kPairBits> pairs_{};
    std::vector<Node> nodes_;  // the first is not used
    std::vector<Edge> edges_;
    std::vector<Use> uses_;
    WordTable words_;
};

// No cues: function words and order classes alone.
const Lexicon& plain_lexicon();

}  // namespace hsca
