// fuzz_text.cpp -- any bytes as text: every SIMD level finds the same segments, spans are in order, and every score is
// in its range and does not depend on what the scorer has read before.
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "fuzz.hpp"
#include "hsca/text/score_text.hpp"
#include "hsca/text/segment.hpp"

using namespace hsca;

namespace {

void check_spans(const std::vector<std::int64_t>& spans, std::int64_t size) {
    std::int64_t last = 0;
    for (std::size_t i = 0; i < spans.size(); i += 2) {
        require(spans[i] >= last && spans[i] < spans[i + 1] && spans[i + 1] <= size, "spans out of order");
        last = spans[i + 1];
    }
}

bool is_in(double x, double low, double high) { return x >= low && x <= high; }

bool is_same(const TextScores& a, const TextScores& b) {
    return a.layer1 == b.layer1 && a.coherence == b.coherence && a.sentiment == b.sentiment &&
           a.nuance_bits == b.nuance_bits && a.domain_bits == b.domain_bits && a.is_short == b.is_short;
}

// All layers, with cues of every kind.
ScoringConfig everything() {
    static const Cue cues[] = {
        {"may", 0, 1000, CueAt::any, CueIn::any},         {"he was", 0, 500, CueAt::start, CueIn::any},
        {"he was here", 1, -300, CueAt::any, CueIn::any}, {"the end", 1, 1000, CueAt::end, CueIn::statement},
        {"three", 2, 1000, CueAt::any, CueIn::question},  {"one", 0, 100, CueAt::any, CueIn::any},
        {"do eiusmod", 2, 700, CueAt::end, CueIn::any},
    };
    static const Lexicon lexicon(cues, 3);
    ScoringConfig config;
    config.lexicon = &lexicon;
    config.nuance = {{{1000, 0.0, 1}, {500, 0.2, 2}, {700, 0.5, 4}}, 8, 16, 32};
    config.domain_rules = {{0, 3, 0.2}, {1, 5, 0.1}};
    return config;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
    // The first byte says how often the rest is repeated: long texts need more than one block of sentences.
    std::vector<char> text;
    const std::size_t copies = size ? data[0] % 8 == 7 ? 1 + data[0] / 8 : 1 : 0;
    for (std::size_t i = 0; i < copies; ++i) {
        text.insert(text.end(), data + 1, data + size);
        if (copies > 1) text.push_back(static_cast<char>('a' + i % 26));  // else all sentences would be one
    }
    text.shrink_to_fit();  // a sanitizer shall see a read past the end
    const std::string_view view(text.data(), text.size());

    Segments found, other;
    segment(view, SimdLevel::scalar, found);
    for (const SimdLevel level : {SimdLevel::baseline}) {
        segment(view, level, other);
        require(
            other.words == found.words && other.sentences == found.sentences && other.paragraphs == found.paragraphs,
            "SIMD levels disagree");
    }
    check_spans(found.sentences, static_cast<std::int64_t>(text.size()));
    check_spans(found.paragraphs, static_cast<std::int64_t>(text.size()));
    require(found.words.empty() == found.sentences.empty() && found.words.empty() == found.paragraphs.empty(),
            "words without a sentence");

    static const ScoringConfig config = everything();
    static TextScorer reused{config};
    TextScorer fresh{config};
    Stop stop(nullptr);
    TextScores first{}, second{}, alone{};
    TextDetail detail;
    require(
        reused.score(view, stop, first) && fresh.score(view, stop, alone) && reused.score(view, stop, second, &detail),
        "stopped");
    require(is_in(first.layer1, 0.0, 1.0) && is_in(first.coherence, 0.0, 1.0), "score outside of [0, 1]");
    require(is_in(first.sentiment, -1.0, 1.0), "sentiment outside of [-1, 1]");
    require(is_same(first, alone) && is_same(first, second), "score depends on the past");
    require(first.domain_bits != 0 && first.domain_bits < 1u << (kDomains + 2), "domain bits that no tag has");
    for (const CueMatch& cue : detail.cues)
        require(cue.begin < cue.end && cue.end <= text.size() && cue.category < 3, "cue outside of the text");
    for (const SentimentToken& token : detail.sentiment_tokens)
        require(token.begin < token.end && token.end <= text.size(), "word of feeling outside of the text");
    require(static_cast<std::size_t>(first.n_words) * 2 == found.words.size(), "words lost");
    require(static_cast<std::size_t>(first.n_sentences) * 2 == found.sentences.size(), "sentences lost");
    require(detail.relational.sentence_scores.size() * 2 == found.sentences.size(), "sentences without a score");
    for (const double score : detail.relational.sentence_scores)
        require(is_in(score, 0.0, 1.0), "sentence score outside of [0, 1]");
    return 0;
}

std::vector<std::string> fuzz_seeds() {
    return {
        "\x01One. Two! Three? \"Four.\" Dr. Smith said U.S. rules e.g. 3.50, no... yes :-) The end.",
        "\x3FHe was here. She is there. They had been to the long house with their friends, and it rained. ",
        "\x01# Title\nText here.\n\n- one\n- two\n\n1. first\r\n2. second\u2029\u2028\u00A0next",
        "\x01\u4E2D\u6587\u3002\u65E5\u672C\u8A9E\u3067\u3059\uFF01\u0E44\u0E17\u0E22 abc\u4E2D",
        "\x3F\u041A\u043E\u0433\u0434\u0430 \u043E\u043D \u0431\u0443\u0434\u0435\u0442 \u0434\u043E\u043C\u0430. "
        "\u042F \u0442\u043E\u0436\u0435. ",
        "\x01"
        "co\u00ADop na\u00EFve stra\u00DFe \uFB03 I\u0301 don\u2019t a-b_c 1,000.5 \U0001F600 "
        "\U00010400\xFF\xC3\xE2\x80\xF0\x9F",
        "\xFFlorem ipsum dolor sit amet! consectetur adipiscing elit? sed do eiusmod. ",
    };
}
