#include "hsca/text/nuance.hpp"

#include <algorithm>
#include <bit>
#include <cstring>
#include <stdexcept>

namespace hsca {

namespace {

// "2", "1.3" or "b", as lists number their entries; "a" and "i" begin too many sentences as words.
bool is_marker(const SentenceWord& word) noexcept {
    if (word.length > 16) return false;
    unsigned char bytes[16];
    std::memcpy(bytes, &word.key, 16);
    if (word.length == 1 && bytes[0] - unsigned{'a'} < 26u) return bytes[0] != 'a' && bytes[0] != 'i';
    return std::all_of(bytes, bytes + word.length,
                       [](unsigned char c) { return c - unsigned{'0'} < 10u || c == '.' || c == ','; });
}

// At how many words a cue still starts the sentence: up to two markers before it do not count.
std::size_t count_openings(std::span<const SentenceWord> words) noexcept {
    std::size_t n = 0;
    while (n < 2 && n < words.size() && is_marker(words[n])) ++n;
    return n + 1;
}

}  // namespace

bool is_question(const unsigned char* text, std::size_t last_word_end, std::size_t end) noexcept {
    for (std::size_t i = last_word_end; i < end; ++i) {
        if (text[i] == '?') return true;
        if (text[i] < 0x80) continue;
        const std::size_t left = end - i;
        if (left >= 2 && text[i] == 0xD8 && text[i + 1] == 0x9F) return true;                         // Arabic
        if (left >= 3 && text[i] == 0xEF && text[i + 1] == 0xBC && text[i + 2] == 0x9F) return true;  // full width
    }
    return false;
}

NuanceLayer::NuanceLayer(const Lexicon& lexicon, const NuanceConfig& config) : lexicon_(lexicon), config_(config) {
    if (config.categories.size() != lexicon.n_categories())
        throw std::invalid_argument("the categories are not those of the lexicon");
}

void NuanceLayer::begin(std::vector<CueMatch>* matches) noexcept {
    matches_ = matches;
    counts_.fill({0, 0, 0});
    n_sentences_ = 0;
    compound_sum_ = 0.0;
}

void NuanceLayer::add_sentence(const unsigned char* text, std::size_t end, std::span<const SentenceWord> words,
                               std::span<const WordPlace> places) {
    ++n_sentences_;
    if (words.empty()) return;
    const Lexicon::Setting setting{count_openings(words),
                                   is_question(text, places.back().begin + places.back().length, end)};
    std::uint64_t touched = 0;
    lexicon_.match(words, setting, [&](const Lexicon::Use& use, std::size_t first, std::size_t last) {
        CategoryCount& count = counts_[use.category];
        ++count.cues;
        count.weight += use.weight;
        in_sentence_[use.category] += use.weight;
        touched |= 1ull << use.category;
        if (matches_) {
            matches_->push_back(
                {use.category, places[first].begin, places[last].begin + places[last].length, use.weight});
        }
    });
    for (; touched; touched &= touched - 1) {
        const auto category = static_cast<std::size_t>(std::countr_zero(touched));
        counts_[category].sentences += in_sentence_[category] >= config_.categories[category].threshold;
        in_sentence_[category] = 0;
    }
}

// A share is written as a decimal: 7 of 100 sentences are 0.07 of them.
constexpr double kSlack = 1e-9;

NuanceLayer::Result NuanceLayer::finish() const noexcept {
    if (n_sentences_ == 0 && compound_sum_ == 0.0) return {0, 0.0};
    const auto n = static_cast<double>(std::max<std::int64_t>(1, n_sentences_));
    const double tone = compound_sum_ / n;
    std::uint32_t flags = tone >= config_.tone_bound    ? config_.positive_flag
                          : tone <= -config_.tone_bound ? config_.negative_flag
                                                        : config_.neutral_flag;
    for (std::size_t category = 0; category < config_.categories.size(); ++category) {
        const std::int64_t shown = counts_[category].sentences;
        if (shown > 0 && static_cast<double>(shown) >= config_.categories[category].share * n - kSlack)
            flags |= config_.categories[category].flags;
    }
    return {flags, tone};
}

}  // namespace hsca
