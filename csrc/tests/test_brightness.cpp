#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

#include "check.hpp"
#include "hsca/memory/brightness.hpp"
#include "hsca/memory/pruning.hpp"

using namespace hsca;

namespace {

check::Random random_source{11};

struct Talk {
    std::vector<std::int64_t> offsets{0};
    std::vector<std::uint8_t> live, exempt;
    std::vector<std::int32_t> brightness, peaks;
    std::vector<std::int64_t> message_of, first_chunk, partner;

    void add(std::size_t n_tokens, bool is_live, std::int32_t bright) {
        offsets.push_back(offsets.back() + static_cast<std::int64_t>(n_tokens));
        live.push_back(is_live);
        exempt.push_back(0);
        brightness.insert(brightness.end(), n_tokens, bright);
        peaks.push_back(bright);
    }
    ConversationChunks chunks() const { return {offsets, live}; }
    std::size_t n_live() const {
        std::size_t n = 0;
        for (std::size_t c = 0; c < live.size(); ++c) n += live[c] ? size(c) : 0;
        return n;
    }
    std::size_t size(std::size_t c) const { return static_cast<std::size_t>(offsets[c + 1] - offsets[c]); }
    PruneCandidates candidates() const { return {chunks(), exempt, peaks, message_of, first_chunk, partner}; }
};

template <class T>
void naive_step(Talk& talk, const std::vector<T>& attention, std::size_t prefix, std::size_t n_scored,
                const BrightnessRule& rule) {
    const T sink = rule.sink == Sink::first ? attention[0] : *std::max_element(attention.begin(), attention.end());
    const double threshold = (1.0 - static_cast<double>(sink)) / static_cast<double>(attention.size() - 1);
    if (!(threshold > 0)) return;
    std::size_t at = prefix;
    for (std::size_t c = 0; c < talk.live.size(); ++c) {
        if (!talk.live[c]) continue;
        for (std::int64_t i = talk.offsets[c]; i < talk.offsets[c + 1]; ++i, ++at) {
            if (c >= n_scored || (rule.sink == Sink::first && at == 0)) continue;
            std::int32_t& b = talk.brightness[static_cast<std::size_t>(i)];
            const auto a = static_cast<double>(attention[at]);
            b = a > threshold ? static_cast<std::int32_t>(std::min<double>(b + std::floor(a / threshold), rule.most))
                              : std::max(b - 1, -kBrightnessLimit);
        }
        const auto* const first = talk.brightness.data() + talk.offsets[c];
        if (c < n_scored) talk.peaks[c] = *std::max_element(first, first + talk.size(c));
    }
}

template <class T>
void compare_steps() {
    for (int round = 0; round < 400; ++round) {
        Talk talk;
        const std::size_t n_chunks = 1 + random_source.below(12);
        // Lengths around the widths of vectors, and every tail.
        for (std::size_t c = 0; c < n_chunks; ++c) talk.add(1 + random_source.below(20), random_source.below(4), 255);
        const std::size_t prefix = random_source.below(3);
        std::vector<T> attention(prefix + talk.n_live());
        if (attention.size() < 2) continue;
        for (T& a : attention) a = static_cast<T>(random_source.below(16)) / static_cast<T>(8 * attention.size());
        const BrightnessRule rule{round % 2 ? Sink::first : Sink::largest, round % 3 ? 300 : kBrightnessLimit};
        const std::size_t n_scored = random_source.below(n_chunks + 1);
        Talk expected = talk;
        naive_step(expected, attention, prefix, n_scored, rule);
        const auto outcome =
            score_step<T>(attention, prefix, talk.chunks(), n_scored, rule, talk.brightness, talk.peaks);
        CHECK(outcome != StepOutcome::refused);
        CHECK(talk.brightness == expected.brightness);
        CHECK(talk.peaks == expected.peaks);
    }
}

void refused_and_extreme() {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    for (const double bad : {-1e-9, std::nan(""), kInfinity, -kInfinity}) {
        Talk talk;
        talk.add(3, true, 255);
        const std::vector<double> attention{0.1, 0.2, bad};
        CHECK_EQ(score_step<double>(attention, 0, talk.chunks(), 1, {}, talk.brightness, talk.peaks),
                 StepOutcome::refused);
        CHECK(talk.brightness == std::vector<std::int32_t>(3, 255));
    }
    Talk talk;
    talk.add(2, true, -kBrightnessLimit);
    const std::vector<double> tiny{std::nextafter(1.0, 0.0), 1e300};  // a quotient beyond any integer
    CHECK_EQ(score_step<double>(tiny, 0, talk.chunks(), 1, {}, talk.brightness, talk.peaks), StepOutcome::scored);
    CHECK_EQ(talk.brightness[1], 0);
    const std::vector<double> nothing{0.5, 0.0};
    talk.brightness = {0, -kBrightnessLimit};
    CHECK_EQ(score_step<double>(nothing, 0, talk.chunks(), 1, {}, talk.brightness, talk.peaks), StepOutcome::scored);
    CHECK_EQ(talk.brightness[1], -kBrightnessLimit);
    const std::vector<double> all_on_sink{1.0, 0.0};
    CHECK_EQ(score_step<double>(all_on_sink, 0, talk.chunks(), 1, {}, talk.brightness, talk.peaks),
             StepOutcome::unchanged);
    Talk empty;
    CHECK_EQ(score_step<float>({}, 0, empty.chunks(), 0, {}, empty.brightness, empty.peaks), StepOutcome::unchanged);
}

void sizes_that_do_not_fit() {
    Talk talk;
    talk.add(2, true, 255);
    const std::vector<float> attention(2), longer(3);
    const auto step = [&](std::span<const float> given, std::size_t prefix, std::size_t n_scored) {
        return score_step<float>(given, prefix, talk.chunks(), n_scored, {}, talk.brightness, talk.peaks);
    };
    CHECK_THROWS(step(longer, 0, 1), std::invalid_argument);
    CHECK_THROWS(step(attention, 5, 1), std::invalid_argument);
    CHECK_THROWS(step(attention, 0, 2), std::invalid_argument);
    talk.offsets = {0, 3};
    CHECK_THROWS(step(attention, 0, 1), std::invalid_argument);
    talk.offsets = {};
    CHECK_THROWS(step(attention, 0, 1), std::invalid_argument);
    talk.offsets = {0, -2};
    CHECK_THROWS(step(attention, 0, 1), std::invalid_argument);
    talk.offsets = {0, 2};
    talk.message_of = {0};
    talk.first_chunk = {0};
    talk.partner = {-1};
    CHECK_EQ(plan_prune(talk.candidates(), 0, {}).size(), std::size_t(1));
    for (const std::int64_t wrong : {-1, 1}) {
        talk.message_of = {wrong};
        CHECK_THROWS(plan_prune(talk.candidates(), 0, {}), std::invalid_argument);
    }
    talk.message_of = {0};
    talk.first_chunk = {1};
    CHECK_THROWS(plan_prune(talk.candidates(), 0, {}), std::invalid_argument);
    talk.first_chunk = {0};
    talk.partner = {1};
    CHECK_THROWS(plan_prune(talk.candidates(), 0, {}), std::invalid_argument);
    talk.partner = {};
    CHECK_THROWS(plan_prune(talk.candidates(), 0, {}), std::invalid_argument);
}

// Without anchors a prune is a sort.
void compare_prunes() {
    for (int round = 0; round < 300; ++round) {
        Talk talk;
        const std::size_t n_chunks = random_source.below(30);
        for (std::size_t c = 0; c < n_chunks; ++c) {
            talk.add(random_source.below(5), random_source.below(4), static_cast<std::int32_t>(random_source.below(6)));
            talk.exempt[c] = !random_source.below(5);
            talk.message_of.push_back(0);
        }
        talk.first_chunk.assign(n_chunks ? 1 : 0, 0);
        talk.partner.assign(n_chunks ? 1 : 0, -1);
        std::vector<std::int64_t> order;
        for (std::size_t c = 0; c < n_chunks; ++c) {
            if (talk.live[c] && !talk.exempt[c]) order.push_back(static_cast<std::int64_t>(c));
        }
        std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
            return talk.peaks[static_cast<std::size_t>(a)] < talk.peaks[static_cast<std::size_t>(b)];
        });
        const std::size_t keep = random_source.below(3), budget = random_source.below(40);
        std::size_t n = talk.n_live(), gone = 0;
        while (n > budget && order.size() - gone > keep) n -= talk.size(static_cast<std::size_t>(order[gone++]));
        order.resize(gone);
        CHECK(plan_prune(talk.candidates(), budget, {false, keep}) == order);
    }
}

// Numbers that are in range but make no sense must not lead anywhere outside.
void nonsense_partners() {
    for (int round = 0; round < 500; ++round) {
        Talk talk;
        const std::size_t n_chunks = 1 + random_source.below(12), n_messages = 1 + random_source.below(6);
        for (std::size_t c = 0; c < n_chunks; ++c) {
            talk.add(1, random_source.below(3), static_cast<std::int32_t>(random_source.below(4)));
            talk.message_of.push_back(static_cast<std::int64_t>(random_source.below(n_messages)));
        }
        for (std::size_t m = 0; m < n_messages; ++m) {
            talk.first_chunk.push_back(static_cast<std::int64_t>(random_source.below(n_chunks)));
            talk.partner.push_back(static_cast<std::int64_t>(random_source.below(n_messages + 1)) - 1);
        }
        auto gone = plan_prune(talk.candidates(), random_source.below(4), {true, random_source.below(2)});
        std::sort(gone.begin(), gone.end());
        CHECK(std::adjacent_find(gone.begin(), gone.end()) == gone.end());
        for (const std::int64_t c : gone) CHECK(talk.live[static_cast<std::size_t>(c)]);
    }
}

// user: 0 1 | assistant: 2 3. The first chunks, 0 and 2, go last and together.
void anchors_go_together() {
    Talk talk;
    for (const int peak : {1, 9, 2, 8}) talk.add(10, true, peak);
    talk.message_of = {0, 0, 1, 1};
    talk.first_chunk = {0, 2};
    talk.partner = {1, 0};
    const std::vector<std::int64_t> all{3, 1, 0, 2};
    CHECK(plan_prune(talk.candidates(), 15, {true, 0}) == all);
    CHECK(plan_prune(talk.candidates(), 20, {true, 0}) == std::vector<std::int64_t>({3, 1}));
    CHECK(plan_prune(talk.candidates(), 15, {true, 1}) == std::vector<std::int64_t>({3}));
    talk.exempt[2] = 1;
    CHECK(plan_prune(talk.candidates(), 0, {true, 0}) == std::vector<std::int64_t>({3, 1}));
}

}  // namespace

int main() {
    compare_steps<float>();
    compare_steps<double>();
    refused_and_extreme();
    sizes_that_do_not_fit();
    compare_prunes();
    nonsense_partners();
    anchors_go_together();
    return check::result();
}
