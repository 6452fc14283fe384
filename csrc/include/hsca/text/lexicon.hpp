// lexicon.hpp -- every word that some layer has a list for, in one table, and cues of several words as a trie over the
// numbers of their words: one probe a word finds function words, order classes and cues alike.
//
// A cue is a run of words. Reading a sentence from the left, the longest cue that starts at a word is taken and reading
// goes on after it: cues do not overlap, and a longer one hides the shorter ones inside it. A cue may be of use to
// several categories, each with a weight (in thousandths, so that sums are exact) and conditions of its own.
#pragma once

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

class Lexicon {
  public:
    static constexpr std::size_t kMaxCategories = 64;
    static constexpr std::size_t kMaxCueWords = 8;
    static constexpr std::size_t kMaxWords = 0xFFFF;
    static constexpr std::int32_t kMaxWeight = 1'000'000;

    // What a category makes of a cue.
    struct Use {
        std::uint16_t category;
        CueAt at;
        CueIn in;
        std::int32_t weight;
    };

    // Throws std::invalid_argument for a cue without words, with more than kMaxCueWords, or of an unknown category, and
    // for more than kMaxWords different words.
    Lexicon(std::span<const Cue> cues, std::size_t n_categories);

    // Value of a word: its facts (SentenceWord) below, the number of the cue word above bit 32.
    const WordTable& words() const noexcept { return words_; }
    std::size_t n_categories() const noexcept { return n_categories_; }

    // Calls visit(uses, first, last) for every cue of a sentence, with the numbers of its first and last word.
    template <class Visit>
    void match(std::span<const SentenceWord> sentence, Visit&& visit) const {
        for (std::size_t i = 0; i < sentence.size(); ++i) {
            if (!(sentence[i].facts & SentenceWord::kStartsCue)) continue;
            std::uint32_t node = first_[sentence[i].cue_word];
            std::uint32_t found = 0;
            std::size_t last = i;
            for (std::size_t j = i; node; node = child(node, sentence[j].cue_word)) {
                if (nodes_[node].n_uses) {
                    found = node;
                    last = j;
                }
                if (!nodes_[node].has_children || ++j == sentence.size()) break;
            }
            if (!found) continue;
            visit(std::span<const Use>(uses_.data() + nodes_[found].uses, nodes_[found].n_uses), i, last);
            i = last;
        }
    }

  private:
    struct Node {
        std::uint32_t uses;
        std::uint32_t n_uses;
        bool has_children;
    };
    struct Edge {  // of an open table: parent and word, 0 for a free slot
        std::uint64_t from;
        std::uint32_t to;
    };

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
    std::vector<std::uint32_t> first_;  // by word: the node of a cue's first word, 0 for none
    std::vector<Node> nodes_;           // the first is not used
    std::vector<Edge> edges_;
    std::vector<Use> uses_;
    WordTable words_;
};

// No cues: function words and order classes alone.
const Lexicon& plain_lexicon();

}  // namespace hsca
