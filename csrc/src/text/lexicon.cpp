#include "hsca/text/lexicon.hpp"

#include <algorithm>
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

// The trie while it grows, and the words it is made of.
struct Growing {
    struct Node {
        std::map<std::uint16_t, std::uint32_t> children;
        std::vector<Cue> cues;
    };
    std::map<Pair, std::uint16_t> words;
    std::vector<Node> nodes{2};  // 0 is none, 1 the root

    std::uint16_t word(const WordKey& key) {
        if (const auto known = words.find({key.low, key.high}); known != words.end()) return known->second;
        if (words.size() == Lexicon::kMaxWords)
            throw std::invalid_argument("the cues have more than " + std::to_string(Lexicon::kMaxWords) + " words");
        return words.try_emplace({key.low, key.high}, static_cast<std::uint16_t>(words.size() + 1)).first->second;
    }
    // Calls visit(cue) for every cue below a node.
    template <class Visit>
    void visit_cues(std::uint32_t node, const Visit& visit) const {
        for (const Cue& cue : nodes[node].cues) visit(cue);
        for (const auto& [word, child] : nodes[node].children) visit_cues(child, visit);
    }
    void add(const Cue& cue) {
        std::uint32_t node = 1;
        for (const WordKey& key : cue_words(cue.text)) {
            const auto [entry, is_new] =
                nodes[node].children.try_emplace(word(key), static_cast<std::uint32_t>(nodes.size()));
            node = entry->second;
            if (is_new) nodes.emplace_back();
        }
        nodes[node].cues.push_back(cue);
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
    for (const auto& [key, number] : trie.words) values[key] |= std::uint64_t{number} << 32;
    std::vector<WordTable::Entry> entries;
    for (const auto& [key, value] : values) entries.push_back({{key.first, key.second}, value});
    return WordTable(entries);
}

}  // namespace

std::vector<WordKey> cue_words(std::string_view text) {
    CueWords sink{reinterpret_cast<const unsigned char*>(text.data())};
    scan_text(sink.text, text.size(), classify_bytes(SimdLevel::scalar), sink);
    if (sink.keys.empty()) throw std::invalid_argument("cue \"" + std::string(text) + "\" holds no word");
    if (sink.keys.size() > Lexicon::kMaxCueWords) {
        throw std::invalid_argument("cue \"" + std::string(text) + "\" has more than " +
                                    std::to_string(Lexicon::kMaxCueWords) + " words");
    }
    return sink.keys;
}

std::uint8_t Lexicon::places_of(CueAt at, CueIn in) noexcept {
    unsigned places = 0;
    for (const bool is_opening : {false, true}) {
        for (const bool is_question : {false, true}) {
            if (at == CueAt::start && !is_opening) continue;
            if (in != CueIn::any && (in == CueIn::question) != is_question) continue;
            places |= 1u << place_of(is_opening, is_question);
        }
    }
    return static_cast<std::uint8_t>(places);
}

Lexicon::Lexicon(std::span<const Cue> cues, std::size_t n_categories)
    : n_categories_(n_categories), words_(std::span<const WordTable::Entry>{}) {
    const Growing trie = grow(cues, n_categories);
    words_ = table_of(trie);
    first_.resize(trie.words.size() + 1);
    for (const auto& [word, node] : trie.nodes[1].children) {
        First& first = first_[word];
        first.node = node;
        for (const Cue& cue : trie.nodes[node].cues) first.alone |= places_of(cue.at, cue.in);
        for (const auto& [second, child] : trie.nodes[node].children) {
            trie.visit_cues(child, [&first](const Cue& cue) { first.longer |= places_of(cue.at, cue.in); });
            const Growing::Node& two = trie.nodes[child];
            if (!two.cues.empty()) pairs_[pair_hash(word, second)] |= kWhole;
            if (!two.children.empty()) pairs_[pair_hash(word, second)] |= kOpens;
            for (const auto& [third, grandchild] : two.children) pairs_[pair_hash(second, third)] |= kGoesOn;
        }
    }
    edges_.assign(std::bit_ceil(2 * trie.nodes.size()), {0, 0});
    for (std::uint32_t node = 0; node < trie.nodes.size(); ++node) {
        const Growing::Node& from = trie.nodes[node];
        nodes_.push_back({static_cast<std::uint32_t>(uses_.size()), static_cast<std::uint32_t>(from.cues.size()),
                          !from.children.empty()});
        for (const Cue& cue : from.cues) {
            uses_.push_back({static_cast<std::uint16_t>(cue.category), places_of(cue.at, cue.in), cue.at == CueAt::end,
                             cue.weight});
        }
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
