#include "hsca/text/score_text.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <stdexcept>
#include <utility>

#include "hsca/text/scan.hpp"

namespace hsca {

namespace {

std::int32_t to_count(std::size_t n) {
    return static_cast<std::int32_t>(std::min<std::size_t>(n, std::numeric_limits<std::int32_t>::max()));
}

}  // namespace

// The scanner's sink: every sentence goes through all layers while its words are at hand.
struct TextScorer::Pass {
    TextScorer& scorer;
    std::string_view text;
    Stop& stop;
    TextDetail* detail;
    std::vector<SentimentToken> sentence_tokens{};
    std::size_t n_sentences = 0;
    std::size_t felt = 0;  // bytes whose sentiment is known

    const unsigned char* bytes() const noexcept { return reinterpret_cast<const unsigned char*>(text.data()); }

    void word(std::size_t begin, std::size_t end) { scorer.words_.add(begin, end); }

    void sentence(std::size_t begin, std::size_t end) {
        ++n_sentences;
        const std::span<const SentenceWord> words = scorer.words_.fold();
        scorer.relational_.add_sentence(words);
        if (scorer.config_.layer1_only) return;
        const std::span<const WordPlace> places = scorer.words_.places();
        scorer.coherence_.add_sentence(bytes(), begin, end, words, places);
        if (scorer.domain_) scorer.domain_->add_sentence(bytes(), begin, end, words);
        scorer.nuance_.add_sentence(bytes(), end, words, places);
        if (n_sentences > 1) feel(begin);
    }

    // The sentiment of the text up to `end`, from where the last piece ended. A sentence's piece reaches to the next
    // sentence, for what has no words, such as an emoji after the stop, has a tone too.
    void feel(std::size_t end) {
        const std::size_t begin = std::exchange(felt, end);
        const std::string_view view = text.substr(begin, end - begin);
        if (!detail) return scorer.nuance_.add_compound(scorer.sentiment_.compound(view));
        const double compound = scorer.sentiment_.explain(view, sentence_tokens);
        scorer.nuance_.add_compound(compound);
        if (n_sentences) detail->sentence_compounds.push_back(compound);
        for (const SentimentToken& token : sentence_tokens)
            detail->sentiment_tokens.push_back({begin + token.begin, begin + token.end, token.valence});
    }

    void paragraph(std::size_t, std::size_t) {}
    bool keep_going() { return !stop.requested(); }
};

TextScorer::TextScorer(const ScoringConfig& config)
    : config_(config),
      classify_(classify_bytes(config.simd)),
      words_(*config.lexicon),
      relational_(config.relational),
      nuance_(*config_.lexicon, config_.nuance) {
    if (config.domain_model) domain_.emplace(*config.domain_model);
}

bool TextScorer::score(std::string_view text, Stop& stop, TextScores& out, TextDetail* detail) {
    if (detail) *detail = {};
    Pass pass{*this, text, stop, detail};
    words_.begin_text(pass.bytes(), text.size());
    relational_.begin(detail ? &detail->relational : nullptr);
    coherence_.begin();
    if (domain_) domain_->begin();
    nuance_.begin(detail ? &detail->cues : nullptr);
    if (!scan_text(pass.bytes(), text.size(), classify_, pass)) return false;
    if (!config_.layer1_only) pass.feel(text.size());

    const RelationalLayer::Result layer1 = relational_.finish();
    const CoherenceParts coherence = coherence_.finish();
    const NuanceLayer::Result nuance = nuance_.finish();
    DomainResult domain =
        domain_ ? domain_->finish() : domains_by_rules(config_.domain_rules, nuance_.counts(), relational_.n_words());
    // The model was taught English words; of others it knows only where their hashes fall.
    if (domain_ && coherence_.english_share() < kLeastEnglish) domain.bits = kUnclassified;
    out = {layer1.score,
           coherence.score,
           nuance.sentiment,
           nuance.flags,
           domain.bits,
           to_count(pass.n_sentences),
           to_count(relational_.n_words()),
           layer1.is_short};
    if (detail) {
        detail->coherence = coherence;
        detail->domain_scores = domain.scores;
        detail->domain_sums = domain.sums;
        detail->categories.assign(nuance_.counts().begin(), nuance_.counts().end());
    }
    return true;
}

bool score_texts(std::span<const std::string_view> texts, const ScoringConfig& config, std::size_t threads,
                 Stop::Poll poll, const ScoreColumns& out) {
    const std::size_t n = texts.size();
    for (const std::size_t size :
         {out.layer1_score.size(), out.coherence_score.size(), out.sentiment_score.size(), out.domain_bits.size(),
          out.nuance_bits.size(), out.n_sentences.size(), out.n_words.size(), out.is_short.size()}) {
        if (size != n) throw std::invalid_argument("score_texts: every column must have one element a text");
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
                                out.coherence_score[i] = scores.coherence;
                                out.sentiment_score[i] = scores.sentiment;
                                out.domain_bits[i] = scores.domain_bits;
                                out.nuance_bits[i] = scores.nuance_bits;
                                out.n_sentences[i] = scores.n_sentences;
                                out.n_words[i] = scores.n_words;
                                out.is_short[i] = scores.is_short;
                            }
                        });
}

}  // namespace hsca
