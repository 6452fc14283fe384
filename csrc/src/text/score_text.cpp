#include "hsca/text/score_text.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>

#include "hsca/text/scan.hpp"

namespace hsca {

namespace {

struct ScoringSink {
    SentenceWords& words;
    RelationalLayer& relational;
    Stop& stop;
    std::size_t n_sentences = 0;

    void word(std::size_t begin, std::size_t end) { words.add(begin, end); }
    void sentence(std::size_t, std::size_t) {
        relational.add_sentence(words.fold());
        ++n_sentences;
    }
    void paragraph(std::size_t, std::size_t) {}
    bool keep_going() { return !stop.requested(); }
};

std::int32_t to_count(std::size_t n) {
    return static_cast<std::int32_t>(std::min<std::size_t>(n, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

TextScorer::TextScorer(const ScoringConfig& config)
    : classify_(classify_bytes(config.simd)), words_(*config.lexicon), relational_(config.relational) {}

bool TextScorer::score(std::string_view text, Stop& stop, TextScores& out, RelationalDetail* detail) {
    const auto* begin = reinterpret_cast<const unsigned char*>(text.data());
    ScoringSink sink{words_, relational_, stop};
    words_.begin_text(begin, text.size());
    relational_.begin(detail);
    if (!scan_text(begin, text.size(), classify_, sink)) return false;
    const RelationalLayer::Result layer1 = relational_.finish();
    out = {layer1.score, to_count(sink.n_sentences), to_count(relational_.n_words()), layer1.is_short};
    return true;
}

bool score_texts(std::span<const std::string_view> texts, const ScoringConfig& config, std::size_t threads,
                 Stop::Poll poll, const ScoreColumns& out) {
    const std::size_t n = texts.size();
    if (out.layer1_score.size() != n || out.n_sentences.size() != n || out.n_words.size() != n ||
        out.is_short.size() != n) {
        throw std::invalid_argument("score_texts: every column must have one element a text");
    }
    constexpr std::size_t kGrain = 32;  // texts handed out at a time: few enough to share a batch of long ones evenly
    threads = std::clamp<std::size_t>(threads, 1, std::max<std::size_t>(1, n));
    std::vector<std::unique_ptr<TextScorer>> scorers(threads);
    Stop stop(poll);
    return parallel_for(n, threads, std::min(kGrain, std::max<std::size_t>(1, n / (threads * 4))), stop,
                        [&](std::size_t worker, std::size_t begin, std::size_t end) {
                            if (!scorers[worker]) scorers[worker] = std::make_unique<TextScorer>(config);
                            TextScores scores{};
                            for (std::size_t i = begin; i < end; ++i) {
                                if (!scorers[worker]->score(texts[i], stop, scores)) return;
                                out.layer1_score[i] = scores.layer1;
                                out.n_sentences[i] = scores.n_sentences;
                                out.n_words[i] = scores.n_words;
                                out.is_short[i] = scores.is_short;
                            }
                        });
}

}  // namespace hsca
