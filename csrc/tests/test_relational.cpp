// relational.hpp, through score_text.hpp: a plain version of the formulas is the oracle.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"
#include "hsca/text/score_text.hpp"

using namespace hsca;

namespace {

using Sentence = std::vector<std::string>;

// The only function words used here, and what they show; content words end in digits, which no suffix is.
const std::map<std::string, int> kListed = {{"the", -1}, {"of", -1}, {"with", -1}, {"he", 0},
                                            {"she", 1},  {"was", 7}, {"is", 8}};

double mean_of_block(const std::vector<Sentence>& block, const std::vector<int>& copies, const RelationalConfig& c,
                     double& live) {
    const auto n = static_cast<double>(block.size());
    std::size_t listed = 0, all = 0;
    std::map<std::string, std::set<std::size_t>> in;
    for (std::size_t i = 0; i < block.size(); ++i) {
        for (const std::string& w : block[i]) {
            ++all;
            if (kListed.count(w)) {
                ++listed;
            } else {
                in[w].insert(i);
            }
        }
    }
    std::set<std::string> grammar;
    for (const auto& [w, kind] : kListed) grammar.insert(w);
    if (static_cast<double>(listed) < c.min_listed * static_cast<double>(all)) {
        for (const auto& [w, where] : in) {
            if (w.size() <= 3 || (w.size() <= 5 && static_cast<double>(where.size()) >= std::max(3.0, 0.15 * n)))
                grammar.insert(w);
        }
    }
    double tokens = 0, carried = 0, breadth = 0.5, evidence = 0;
    for (const Sentence& s : block) {
        bool after = false;
        for (const std::string& w : s) {
            const bool is_grammar = grammar.count(w) != 0;
            tokens += !is_grammar;
            carried += !is_grammar && after;
            after = is_grammar;
        }
    }
    std::map<std::string, double> tie;
    for (const auto& [w, where] : in) {
        if (grammar.count(w) || where.size() < 2) continue;
        const double k = static_cast<double>(where.size()) - 1, rate = k / (n - 1);
        breadth += (1 - rate) / k;
        tie[w] = (1 - rate) / std::sqrt(k);
        for (auto at = where.begin(), last = at++; at != where.end(); last = at++) {
            const auto gap = static_cast<double>(*at - *last);
            evidence += -std::log(1 - std::exp(-(gap - 0.5) * std::max(rate, c.min_rate))) - 1;
        }
    }
    double persistence = 0;
    for (int kind = 0; kind < 9; ++kind) {
        std::vector<bool> shows;
        double share = 0, agreeing = 0;
        for (const Sentence& s : block) {
            shows.push_back(std::any_of(
                s.begin(), s.end(), [&](const std::string& w) { return kListed.count(w) && kListed.at(w) == kind; }));
            share += shows.back() / n;
        }
        for (std::size_t i = 1; i < shows.size(); ++i) agreeing += shows[i] == shows[i - 1];
        persistence += agreeing - (n - 1) * (share * share + (1 - share) * (1 - share));
    }
    double strength = 0;
    if (tokens > 0) {
        const double z = c.softness * (c.log_scale + c.breadth_weight * std::log(breadth / tokens) +
                                       c.carriage_weight * std::log((carried + 1) / (tokens + 2)) +
                                       (c.cluster_weight * evidence / tokens - c.length_weight) * std::log(n) +
                                       c.continuity_weight * persistence / std::sqrt(n));
        strength = 1 / (1 + std::exp(-std::clamp(z, -60.0, 60.0)));
    }
    double sum = 0;
    for (std::size_t i = 0; i < block.size(); ++i) {
        std::vector<double> r;
        for (const std::string& w : block[i]) {
            if (!grammar.count(w)) r.push_back(tie.count(w) ? tie[w] : 0.0);
        }
        double x = 0, pairs = 0;
        for (std::size_t u = 0; u < r.size(); ++u) {
            for (std::size_t v = u + 1; v < std::min(u + c.window, r.size()); ++v, ++pairs)
                x += 1 - (1 - r[u]) * (1 - r[v]);
        }
        x = pairs > 0 ? x / pairs : r.empty() ? 0.0 : r[0];
        sum += copies[i] * strength * (1 - c.own_share + c.own_share * x / (x + c.own_half));
        live += copies[i];
    }
    return sum;
}

double naive_score(const std::vector<Sentence>& sentences, const RelationalConfig& c, bool& is_short) {
    std::vector<Sentence> pending;
    std::vector<std::set<std::string>> bags;
    std::vector<int> copies;
    double sum = 0, live = 0;
    bool judged = false;
    const auto judge = [&](std::size_t count) {
        const auto end = static_cast<std::ptrdiff_t>(count);
        sum += mean_of_block({pending.begin(), pending.begin() + end}, {copies.begin(), copies.begin() + end}, c, live);
        pending.erase(pending.begin(), pending.begin() + end);
        bags.erase(bags.begin(), bags.begin() + end);
        copies.erase(copies.begin(), copies.begin() + end);
        judged = true;
    };
    for (const Sentence& s : sentences) {
        std::set<std::string> bag;
        for (const std::string& w : s) {
            if (!kListed.count(w)) bag.insert(w);
        }
        if (bag.empty()) continue;
        const auto same = std::find(bags.begin(), bags.end(), bag);
        if (same != bags.end()) {
            ++copies[static_cast<std::size_t>(same - bags.begin())];
            continue;
        }
        pending.push_back(s);
        bags.push_back(bag);
        copies.push_back(1);
        if (pending.size() == 96) judge(64);
    }
    is_short = !judged && pending.size() < 3;
    if (is_short) return pending.empty() ? 0.0 : c.short_score;
    judge(pending.size());
    return sum / live;
}

std::string join(const std::vector<Sentence>& sentences) {
    std::string text;
    for (const Sentence& s : sentences) {
        for (std::size_t i = 0; i < s.size(); ++i) text += (i ? " " : "") + s[i];
        text += "! ";  // never an abbreviation
    }
    return text;
}

struct Shape {
    std::size_t sentences, longest, vocabulary;
    double listed;
};

std::vector<Sentence> random_sentences(check::Random& random, const Shape& shape) {
    const std::string_view stems[] = {"x", "xy", "abc", "lorem", "consectetur", "veryverylongwordindeed"};
    std::vector<std::string> listed;
    for (const auto& [w, kind] : kListed) listed.push_back(w);
    std::vector<Sentence> sentences(shape.sentences);
    for (Sentence& s : sentences) {
        for (std::size_t n = 1 + random.below(shape.longest); n; --n) {
            if (static_cast<double>(random.below(1000)) < shape.listed * 1000) {
                s.push_back(random.of(listed));
            } else {
                const std::size_t number = random.below(shape.vocabulary) * random.below(1000) / 1000;
                s.push_back(std::string(stems[number % std::size(stems)]) + std::to_string(number));
            }
        }
    }
    return sentences;
}

const Shape kShapes[] = {
    {0, 5, 5, 0.4},    {1, 5, 5, 0.4},      {2, 5, 5, 0.4},        {3, 5, 50, 0.4},       {10, 12, 30, 0.4},
    {10, 12, 30, 0.0}, {63, 12, 60, 0.4},   {64, 12, 60, 0.4},     {65, 12, 60, 0.05},    {95, 12, 90, 0.4},
    {96, 12, 90, 0.0}, {97, 12, 90, 0.1},   {160, 8, 400, 0.3},    {200, 3, 10, 0.5},     {300, 2, 6, 0.5},
    {20, 3, 4, 1.0},   {12, 999, 500, 0.4}, {200, 60, 20000, 0.3}, {330, 60, 50000, 0.1},
};

TextScores score(TextScorer& scorer, std::string_view text, TextDetail* detail = nullptr) {
    const std::vector<char> exact(text.begin(), text.end());
    Stop stop(nullptr);
    TextScores scores{};
    CHECK(scorer.score({exact.data(), exact.size()}, stop, scores, detail));
    return scores;
}

std::vector<std::string> texts;

// One scorer for all texts, long and short ones in turn: what one leaves behind must not show in the next.
void against_the_formulas() {
    check::Random random{8};
    for (const std::size_t window : {2u, 5u, 1000u}) {
        ScoringConfig config;
        config.relational.window = window;
        TextScorer reused(config);
        for (int round = 0; round < 3; ++round) {
            for (std::size_t i = 0; i < std::size(kShapes); ++i) {
                const Shape& shape = kShapes[(i * 7 + static_cast<std::size_t>(round)) % std::size(kShapes)];
                std::vector<Sentence> sentences = random_sentences(random, shape);
                if (round == 1) {  // a language change: the profile of one block must not last into the next
                    const std::vector<Sentence> more = random_sentences(random, {130, 12, 60, 0.5});
                    sentences.insert(sentences.end(), more.begin(), more.end());
                }
                const std::string text = join(sentences);
                bool is_short = false;
                const double expected = naive_score(sentences, config.relational, is_short);
                TextDetail detail;
                const TextScores found = score(reused, text), again = score(reused, text, &detail);
                TextScorer fresh(config);
                const TextScores alone = score(fresh, text);
                CHECK_EQ(found.layer1, alone.layer1);
                CHECK_EQ(found.layer1, again.layer1);
                CHECK_EQ(found.is_short, is_short);
                CHECK_EQ(static_cast<std::size_t>(found.n_sentences), sentences.size());
                CHECK_EQ(detail.relational.sentence_scores.size(), sentences.size());
                CHECK(found.layer1 >= 0.0 && found.layer1 <= 1.0);
                // Sums in another order, and libm's exp and log.
                if (!(std::fabs(found.layer1 - expected) <= 1e-11 * expected)) {
                    check::fail(__FILE__, __LINE__,
                                check::show(found.layer1) + " is not " + check::show(expected) + " for " +
                                    std::to_string(shape.sentences) + " sentences");
                }
                if (window == 5) texts.push_back(text);
            }
        }
    }
}

// Columns of n rows, filled with what no score is.
struct Columns {
    std::vector<double> layer1, coherence, sentiment;
    std::vector<std::uint16_t> domains;
    std::vector<std::uint32_t> flags;
    std::vector<std::int32_t> sentences, words;
    std::vector<std::uint8_t> is_short;

    explicit Columns(std::size_t n)
        : layer1(n, -9.0),
          coherence(n, -9.0),
          sentiment(n, -9.0),
          domains(n, 0xFFFF),
          flags(n, ~0u),
          sentences(n, -9),
          words(n, -9),
          is_short(n, 9) {}
    bool operator==(const Columns&) const = default;
    ScoreColumns spans() { return {layer1, coherence, sentiment, domains, flags, sentences, words, is_short}; }
};

void batches() {
    const std::vector<std::string_view> views(texts.begin(), texts.end());
    const std::size_t n = views.size();
    Columns first(n);
    CHECK(score_texts(views, {}, 1, nullptr, first.spans()));
    for (std::size_t i = 0; i < n; ++i) {
        CHECK(first.is_short[i] <= 1);
        CHECK(first.coherence[i] >= 0.0 && first.coherence[i] <= 1.0);
        CHECK(first.sentiment[i] >= -1.0 && first.sentiment[i] <= 1.0);
    }
    for (const std::size_t threads : {2u, 3u, 200u}) {
        Columns more(n);
        CHECK(score_texts(views, {}, threads, nullptr, more.spans()));
        CHECK(more == first);
    }
    TextScorer scorer{ScoringConfig{}};
    for (std::size_t i = 0; i < n; ++i) CHECK_EQ(score(scorer, views[i]).layer1, first.layer1[i]);

    const std::string_view two[] = {"One.", "Two."};
    Columns wrong(2);
    wrong.words.resize(1);
    CHECK_THROWS(score_texts(two, {}, 1, nullptr, wrong.spans()), std::invalid_argument);
    CHECK_THROWS(score_texts(views, {}, 1, nullptr, Columns(2).spans()), std::invalid_argument);
    CHECK(score_texts({}, {}, 4, nullptr, ScoreColumns{}));
}

void stopping() {
    std::string text;
    for (int i = 0; i < 20000; ++i) text += "word. ";
    Stop stop([] { return true; });
    std::this_thread::sleep_for(std::chrono::milliseconds(30));  // it is asked every 20
    TextScorer scorer{ScoringConfig{}};
    TextScores scores{};
    CHECK(!scorer.score(text, stop, scores));
    // A text given up halfway leaves nothing behind.
    for (std::size_t i = 0; i < std::min<std::size_t>(texts.size(), 5); ++i) {
        TextScorer fresh{ScoringConfig{}};
        CHECK_EQ(score(scorer, texts[i]).layer1, score(fresh, texts[i]).layer1);
    }
}

}  // namespace

int main() {
    against_the_formulas();
    batches();
    stopping();
    return check::result();
}
