// lexicon.hpp and nuance.hpp
#include <map>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "hsca/text/lexicon.hpp"
#include "hsca/text/nuance.hpp"

using namespace hsca;

namespace {

// One sentence after another, as the scorer hands them on.
struct Reader {
    const Lexicon& lexicon;
    NuanceLayer& layer;
    std::string_view text;
    SentenceWords words{lexicon};

    Reader(const Lexicon& l, NuanceLayer& n, std::string_view t) : lexicon(l), layer(n), text(t) {
        words.begin_text(bytes(), text.size());
    }
    const unsigned char* bytes() const { return reinterpret_cast<const unsigned char*>(text.data()); }
    void word(std::size_t begin, std::size_t end) { words.add(begin, end); }
    void sentence(std::size_t, std::size_t end) {
        const auto folded = words.fold();
        layer.add_sentence(bytes(), end, folded, words.places());
    }
    void paragraph(std::size_t, std::size_t) {}
    bool keep_going() { return true; }
};

struct Found {
    std::vector<CueMatch> matches;
    std::vector<CategoryCount> counts;
    std::uint32_t flags;
};

Found read(std::span<const Cue> cues, std::vector<NuanceCategory> categories, std::string_view text) {
    const Lexicon lexicon(cues, categories.size());
    NuanceConfig config;
    config.categories = std::move(categories);
    NuanceLayer layer(lexicon, config);
    Found found;
    layer.begin(&found.matches);
    Reader reader(lexicon, layer, text);
    scan_text(reader.bytes(), text.size(), classify_bytes(SimdLevel::baseline), reader);
    found.flags = layer.finish().flags;
    found.counts.assign(layer.counts().begin(), layer.counts().end());
    return found;
}

constexpr Cue plain(std::string_view text, std::size_t category = 0, std::int32_t weight = 1000) {
    return {text, category, weight, CueAt::any, CueIn::any};
}

std::string shown(const Found& found, const std::string& text) {
    std::string result;
    for (const CueMatch& match : found.matches)
        result += std::to_string(match.category) + ":" + text.substr(match.begin, match.end - match.begin) + "|";
    return result;
}

void the_longest_cue_wins() {
    const Cue cues[] = {plain("never"), plain("almost never", 0, 0), plain("almost"), plain("almost never before")};
    const std::string text = "Never again. Almost never. It almost never rains. Almost, never before.";
    const Found found = read(cues, {{}}, text);
    CHECK_EQ(shown(found, text), std::string("0:Never|0:Almost never|0:almost never|0:Almost, never before|"));
    CHECK_EQ(found.counts[0].cues, 4);
    CHECK_EQ(found.counts[0].weight, 2000);
}

void categories_do_not_see_each_other() {
    const Cue cues[] = {plain("never"), plain("almost never", 1), plain("almost", 2), plain("never before", 2)};
    const std::string text = "Almost never before.";
    const Found found = read(cues, {{}, {}, {}}, text);
    CHECK_EQ(shown(found, text), std::string("1:Almost never|2:Almost|0:never|2:never before|"));
}

void a_cue_that_breaks_off_gives_way_to_its_beginning() {
    const Cue cues[] = {plain("in"), plain("in some rare cases"), plain("some")};
    const std::string text = "In some rare places.";
    CHECK_EQ(shown(read(cues, {{}}, text), text), std::string("0:In|0:some|"));
}

void one_cue_with_several_conditions() {
    const Cue cues[] = {{"so", 0, 1000, CueAt::start, CueIn::any}, {"so", 0, 200, CueAt::any, CueIn::any}};
    CHECK_EQ(read(cues, {{}}, "So so.").counts.front().weight, 1400);
}

void conditions() {
    const Cue cues[] = {
        {"turn", 0, 1000, CueAt::start, CueIn::any},
        {"right", 1, 1000, CueAt::end, CueIn::any},
        {"who cares", 2, 1000, CueAt::any, CueIn::question},
        {"please", 3, 1000, CueAt::any, CueIn::statement},
    };
    const std::vector<NuanceCategory> four(4);
    const auto counts = [&](std::string_view text) {
        std::string shown;
        for (const CategoryCount& count : read(cues, four, text).counts) shown += std::to_string(count.cues);
        return shown;
    };
    CHECK_EQ(counts("Turn left."), std::string("1000"));
    CHECK_EQ(counts("2. Turn left."), std::string("1000"));
    CHECK_EQ(counts("1.3 Turn left."), std::string("1000"));
    CHECK_EQ(counts("b) Turn left."), std::string("1000"));
    CHECK_EQ(counts("A turn left."), std::string("0000"));
    CHECK_EQ(counts("1 2 3 Turn left."), std::string("0000"));
    CHECK_EQ(counts("I turn left."), std::string("0000"));
    CHECK_EQ(counts("It is right."), std::string("0100"));
    CHECK_EQ(counts("It is right now."), std::string("0000"));
    CHECK_EQ(counts("And who cares?"), std::string("0010"));
    CHECK_EQ(counts("And \"who cares?!\""), std::string("0010"));
    CHECK_EQ(counts("And who cares."), std::string("0000"));
    CHECK_EQ(counts("Who cares \uFF1F"), std::string("0010"));
    CHECK_EQ(counts("Who cares \u061F"), std::string("0010"));
    CHECK_EQ(counts("Please come."), std::string("0001"));
    CHECK_EQ(counts("Please come?"), std::string("0000"));
}

void thresholds_and_shares() {
    const Cue cues[] = {plain("may", 0, 600), plain("might", 0, 400), plain("not", 0, -300)};
    const std::vector<NuanceCategory> one{{1000, 0.25, 4}};
    CHECK_EQ(read(cues, one, "It may or might.").flags, 4u);
    CHECK_EQ(read(cues, one, "It may not, or might.").flags, 0u);
    CHECK_EQ(read(cues, one, "It may. It might.").flags, 0u);
    CHECK_EQ(read(cues, one, "It may or might. So. So. So.").flags, 4u);
    CHECK_EQ(read(cues, one, "It may or might. So. So. So. So.").flags, 0u);
    CHECK_EQ(read(cues, one, "").flags, 0u);
}

void words_of_every_script() {
    const Cue cues[] = {plain("Peut-\u00EAtre"), plain("\u4E5F\u8BB8"), plain("don\u2019t know"),
                        plain("antidisestablishmentarianism")};
    for (const std::string_view text :
         {"PEUT-\u00CATRE pas.", "\u4ED6\u4E5F\u8BB8\u6765\u3002", "I Don't know.", "Antidisestablishmentarianism!"}) {
        const Found found = read(cues, std::vector<NuanceCategory>(1), text);
        CHECK_EQ(found.counts[0].cues, 1);
    }
}

// Against a plain search over random sentences of few words, so that cues overlap all the time.
void random_sentences() {
    check::Random random{11};
    for (int round = 0; round < 300; ++round) {
        std::map<std::vector<char>, std::size_t> trie;
        std::vector<std::string> texts;
        for (std::size_t i = 0; i < 12; ++i) {
            std::vector<char> cue;
            for (std::size_t n = 1 + random.below(4); n; --n) cue.push_back("abcd"[random.below(4)]);
            if (!trie.emplace(cue, texts.size()).second) continue;
            std::string text;
            for (const char c : cue) text += std::string(2, c) + ' ';
            texts.push_back(text);
        }
        std::vector<Cue> cues;
        for (std::size_t i = 0; i < texts.size(); ++i) cues.push_back(plain(texts[i], 0, 1 << i));
        std::vector<char> sentence;
        std::string text;
        for (std::size_t n = 1 + random.below(30); n; --n) {
            sentence.push_back("abcde"[random.below(5)]);
            text += std::string(2, sentence.back()) + ' ';
        }
        std::int64_t expected = 0;
        for (std::size_t i = 0; i < sentence.size();) {
            std::size_t taken = 1;
            for (std::size_t n = 4; n > 0; --n) {
                if (i + n > sentence.size()) continue;
                const auto at = sentence.begin() + static_cast<std::ptrdiff_t>(i);
                const auto cue = trie.find(std::vector<char>(at, at + static_cast<std::ptrdiff_t>(n)));
                if (cue == trie.end()) continue;
                expected += 1 << cue->second;
                taken = n;
                break;
            }
            i += taken;
        }
        const Found found = read(cues, {{}}, text);
        CHECK_EQ(found.counts[0].weight, expected);
    }
}

void bad_cues_are_refused() {
    const auto make = [](const Cue& cue) { return Lexicon(std::span(&cue, 1), 1); };
    CHECK_THROWS(make(plain("")), std::invalid_argument);
    CHECK_THROWS(make(plain("?!")), std::invalid_argument);
    CHECK_THROWS(make(plain("a b c d e f g h i")), std::invalid_argument);
    CHECK_THROWS(make(plain("a", 1)), std::invalid_argument);
    CHECK_THROWS(make(plain("a", 0, Lexicon::kMaxWeight + 1)), std::invalid_argument);
    CHECK_THROWS(Lexicon({}, Lexicon::kMaxCategories + 1), std::invalid_argument);
    const Lexicon none({}, 0);
    NuanceConfig config;
    config.categories.resize(1);
    CHECK_THROWS(NuanceLayer(none, config), std::invalid_argument);
}

void the_tone_is_the_mean_of_the_sentences() {
    const Lexicon none({}, 0);
    NuanceConfig config;
    config.positive_flag = 1;
    config.negative_flag = 2;
    config.neutral_flag = 4;
    NuanceLayer layer(none, config);
    const auto tone = [&](std::initializer_list<double> compounds) {
        layer.begin();
        for (const double compound : compounds) {
            layer.add_sentence(nullptr, 0, {}, {});
            layer.add_compound(compound);
        }
        return layer.finish().flags;
    };
    CHECK_EQ(tone({0.5, -0.25}), 1u);
    CHECK_EQ(tone({0.5, -0.4375}), 4u);
    CHECK_EQ(tone({0.1, -0.5}), 2u);
    CHECK_EQ(tone({}), 0u);
}

void a_text_without_words_may_have_a_tone() {
    NuanceConfig config;
    config.positive_flag = 1;
    config.neutral_flag = 4;
    NuanceLayer layer(plain_lexicon(), config);
    layer.begin();
    layer.add_compound(0.5);
    CHECK_EQ(layer.finish().flags, 1u);
    CHECK_EQ(layer.finish().sentiment, 0.5);
    layer.begin();
    layer.add_compound(0.0);
    CHECK_EQ(layer.finish().flags, 0u);
}

void a_full_lexicon_takes_known_words() {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < Lexicon::kMaxWords; ++i) texts.push_back("w" + std::to_string(i));
    std::vector<Cue> cues;
    for (const std::string& text : texts) cues.push_back(plain(text));
    cues.push_back(plain("w1 w2"));
    const Lexicon lexicon(cues, 1);
    CHECK_EQ(lexicon.n_categories(), 1u);
    cues.push_back(plain("another"));
    CHECK_THROWS(Lexicon(cues, 1), std::invalid_argument);
}

}  // namespace

int main() {
    the_longest_cue_wins();
    categories_do_not_see_each_other();
    a_cue_that_breaks_off_gives_way_to_its_beginning();
    one_cue_with_several_conditions();
    conditions();
    thresholds_and_shares();
    words_of_every_script();
    random_sentences();
    bad_cues_are_refused();
    the_tone_is_the_mean_of_the_sentences();
    a_text_without_words_may_have_a_tone();
    a_full_lexicon_takes_known_words();
    return check::result();
}
