#include "hsca/text/lexicon.hpp"

#include <bit>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "hsca/text/order_words.hpp"

namespace hsca {

namespace {

using Pair = std::pair<std::uint64_t, std::uint64_t>;

struct CueWords {
    const unsigned char* text;
    std::vector<unsigned char> scratch{};
    std::vector<WordKey> keys{};

    void word(std::size_t begin, std::size_t end) {
        keys.push_back(fold_word_slowly({text + begin, end - begin}, scratch).key);
    }
    void sentence(std::size_t, std::size_t) {}
    void paragraph(std::size_t, std::size_t) {}
    bool keep_going() { return true; }
};

std::vector<WordKey> words_of(std::string_view text) {
    CueWords sink{reinterpret_cast<const unsigned char*>(text.data())};
    scan_text(sink.text, text.size(), classify_bytes(SimdLevel::scalar), sink);
    if (sink.keys.empty()) throw std::invalid_argument("cue \"" + std::string(text) + "\" holds no word");
    if (sink.keys.size() > Lexicon::kMaxCueWords) {
        throw std::invalid_argument("cue \"" + std::string(text) + "\" has more than " +
                                    std::to_string(Lexicon::kMaxCueWords) + " words");
    }
    return sink.keys;
}

// The trie while it grows, and the words it is made of.
struct Growing {
    struct Node {
        std::map<std::uint16_t, std::uint32_t> children;
        std::vector<Lexicon::Use> uses;
    };
    std::map<Pair, std::uint16_t> words;
    std::vector<Node> nodes{{}, {}};  // 0 is none, 1 the root

    std::uint16_t word(const WordKey& key) {
        if (words.size() == Lexicon::kMaxWords)
            throw std::invalid_argument("the cues have more than " + std::to_string(Lexicon::kMaxWords) + " words");
        return words.try_emplace({key.low, key.high}, static_cast<std::uint16_t>(words.size() + 1)).first->second;
    }
    void add(const Cue& cue) {
        std::uint32_t node = 1;
        for (const WordKey& key : words_of(cue.text)) {
            const auto [entry, is_new] =
                nodes[node].children.try_emplace(word(key), static_cast<std::uint32_t>(nodes.size()));
            node = entry->second;
            if (is_new) nodes.emplace_back();
        }
        nodes[node].uses.push_back({static_cast<std::uint16_t>(cue.category), cue.at, cue.in, cue.weight});
    }
};

Growing grow(std::span<const Cue> cues, std::size_t n_categories) {
    if (n_categories > Lexicon::kMaxCategories)
        throw std::invalid_argument("more than " + std::to_string(Lexicon::kMaxCategories) + " categories");
    Growing trie;
    for (const Cue& cue : cues) {
        if (cue.category >= n_categories) throw std::invalid_argument("cue of an unknown category");
        if (cue.weight > Lexicon::kMaxWeight || cue.weight < -Lexicon::kMaxWeight)
            throw std::invalid_argument("cue \"" + std::string(cue.text) + "\" weighs too much");
        trie.add(cue);
    }
    return trie;
}

WordTable table_of(const Growing& trie) {
    std::map<Pair, std::uint64_t> values;
    for (const WordTable::Entry& entry : function_word_entries())
        values[{entry.key.low, entry.key.high}] |= entry.value;
    for (const OrderWord& entry : order_words()) {
        const WordKey key = folded_key(entry.word);
        values[{key.low, key.high}] |= std::uint64_t{entry.order_class} << SentenceWord::kOrderShift;
    }
    for (const auto& [key, number] : trie.words) {
        const std::uint64_t starts = trie.nodes[1].children.count(number) ? SentenceWord::kStartsCue : 0;
        values[key] |= std::uint64_t{number} << 32 | starts;
    }
    std::vector<WordTable::Entry> entries;
    for (const auto& [key, value] : values) entries.push_back({{key.first, key.second}, value});
    return WordTable(entries);
}

}  // namespace

Lexicon::Lexicon(std::span<const Cue> cues, std::size_t n_categories)
    : n_categories_(n_categories), words_(std::span<const WordTable::Entry>{}) {
    const Growing trie = grow(cues, n_categories);
    words_ = table_of(trie);
    first_.assign(trie.words.size() + 1, 0);
    for (const auto& [word, node] : trie.nodes[1].children) first_[word] = node;
    edges_.assign(std::bit_ceil(2 * trie.nodes.size()), {0, 0});
    for (std::uint32_t node = 0; node < trie.nodes.size(); ++node) {
        const Growing::Node& from = trie.nodes[node];
        nodes_.push_back({static_cast<std::uint32_t>(uses_.size()), static_cast<std::uint32_t>(from.uses.size()),
                          !from.children.empty()});
        uses_.insert(uses_.end(), from.uses.begin(), from.uses.end());
        for (const auto& [word, to] : from.children) {
            const std::uint64_t key = edge_key(node, word);
            std::size_t slot = edge_slot(key);
            while (edges_[slot].from) slot = (slot + 1) & (edges_.size() - 1);
            edges_[slot] = {key, to};
        }
    }
}

const Lexicon& plain_lexicon() {
    static const Lexicon lexicon({}, 0);
    return lexicon;
}

}  // namespace hsca
