#include "hsca/text/relational.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "hsca/portable_math.hpp"
#include "hsca/text/function_words.hpp"

namespace hsca {

namespace {

constexpr std::size_t kSmallTable = 1024;  // slots: a text of a few kilobytes
constexpr std::size_t kManyWords = 4096;   // words kept before those of judged sentences are forgotten

// base^(2g - 1) for the gap g.
double odd_power(double base, std::uint32_t gap) noexcept {
    double result = base;
    double square = base * base;
    for (std::uint32_t n = gap - 1; n; n >>= 1) {
        if (n & 1) result *= square;
        square *= square;
    }
    return result;
}

std::uint32_t count_characters(const WordKey& key) noexcept {
    // Bytes that are neither padding nor UTF-8 continuation; keys of long words count as long, which is all that is
    // asked.
    std::uint32_t n = 0;
    for (const std::uint64_t half : {key.low, key.high}) {
        for (unsigned i = 0; i < 64; i += 8) {
            const auto byte = static_cast<unsigned>(half >> i & 0xFF);
            n += byte != 0 && (byte & 0xC0) != 0x80;
        }
    }
    return key.high >> 56 == 0xFF ? 16 : n;
}

}  // namespace

std::size_t RelationalDetail::stem_of(const WordKey& key) {
    const auto [entry, is_new] = numbers_.try_emplace({key.low, key.high}, stem_scores.size());
    if (is_new) stem_scores.push_back(0.0);
    return entry->second;
}

void RelationalLayer::begin(RelationalDetail* detail) {
    detail_ = detail;
    word_number_ = 0;
    clear_words();
    tokens_.clear();
    pending_.clear();
    score_sum_ = 0.0;
    n_live_ = n_judged_ = 0;
    where_.clear();
    distinct_scores_.clear();
    if (detail_) *detail_ = {};
}

void RelationalLayer::clear_words() {
    if (table_.size() != kSmallTable) {
        table_.assign(kSmallTable, 0u);
    } else if (n_words_ > kSmallTable / 16) {
        std::fill(table_.begin(), table_.end(), 0u);
    } else {
        // A handful of words: every occupied slot is reached from the place that its own word hashes to.
        for (std::uint32_t id = 0; id < n_words_; ++id) {
            for (std::size_t slot = states_[id].hash % kSmallTable; table_[slot]; slot = (slot + 1) % kSmallTable) {
                table_[slot] = 0;
            }
        }
    }
    n_words_ = 0;
}

void RelationalLayer::place(std::uint32_t id) noexcept {
    const std::size_t mask = table_.size() - 1;
    std::size_t slot = states_[id].hash & mask;
    while (table_[slot]) slot = (slot + 1) & mask;
    table_[slot] = id + 1;
}

// Afterwards n_words more can be added: the table stays at most half full, and one state past them may be written.
void RelationalLayer::make_room(std::size_t n_words) {
    const std::size_t needed = n_words_ + n_words;
    if (states_.size() <= needed) states_.resize(std::max<std::size_t>(2 * needed, 256));
    if (table_.size() < 2 * needed) {
        table_.assign(std::bit_ceil(4 * needed), 0u);
        for (std::uint32_t id = 0; id < n_words_; ++id) place(id);
    }
}

// Half of all look-ups meet a new word, so "new or known" is no branch: the word is written as if it were new, and only
// another word in its slot is a reason to jump.
inline std::uint32_t RelationalLayer::id_of(const WordKey& stem, bool is_unspaced) noexcept {
    const std::uint64_t hash = hash_key(stem);
    const std::size_t mask = table_.size() - 1;
    WordState& fresh = states_[n_words_];
    fresh.key = stem;
    fresh.hash = hash;
    fresh.is_unspaced = is_unspaced;
    fresh.is_profile = false;
    for (std::size_t slot = hash & mask;; slot = (slot + 1) & mask) {
        const std::uint32_t number = table_[slot];
        const std::uint32_t is_new = number == 0;
        const std::uint32_t id = number - 1 + ((n_words_ + 1) & (0u - is_new));  // a ?: here becomes a branch
        if (states_[id].key == stem) [[likely]] {
            table_[slot] = id + 1;
            n_words_ += is_new;
            return id;
        }
    }
}

void RelationalLayer::add_sentence(std::span<const SentenceWord> words) {
    // Whether a word is a function word is a coin toss: no branch depends on it.
    constexpr std::uint32_t kCarried = 1u << 31;
    std::size_t n_content = 0;
    std::uint32_t facts = 0, after_function_word = 0;
    for (std::uint32_t i = 0; i < words.size(); ++i) {
        const std::uint32_t is_function = (words[i].facts & SentenceWord::kFunction) != 0;
        content_[n_content] = i | after_function_word;
        n_content += 1 - is_function;
        after_function_word = kCarried & (0u - is_function);
        facts |= words[i].facts;
    }

    const std::size_t token_begin = tokens_.size();
    std::uint64_t bag[2] = {0, 0};  // sums over the set of words: the order of the words does not matter
    std::uint32_t n_unspaced = 0;
    ++sentence_stamp_;
    tokens_.resize(token_begin + n_content);
    make_room(n_content);
    for (std::size_t i = 0; i < n_content; ++i) {
        const SentenceWord& word = words[content_[i] & ~kCarried];
        const bool is_unspaced = (word.facts & SentenceWord::kUnspaced) != 0;
        const std::uint32_t id = id_of(stem(word.key, word.length), is_unspaced);
        tokens_[token_begin + i] = {id, (content_[i] & kCarried) != 0};
        n_unspaced += is_unspaced;
        WordState& state = states_[id];
        const std::uint64_t is_new = state.bag_stamp != sentence_stamp_ ? ~0ull : 0;
        state.bag_stamp = sentence_stamp_;
        bag[0] += state.hash & is_new;
        bag[1] += mix(state.hash) & is_new;
        if (detail_) [[unlikely]] {
            detail_->token_words.push_back(static_cast<std::int64_t>(word_number_ + (content_[i] & ~kCarried)));
            detail_->token_sentences.push_back(static_cast<std::int64_t>(where_.size()));
            detail_->token_stems.push_back(static_cast<std::int64_t>(detail_->stem_of(state.key)));
        }
    }
    word_number_ += words.size();
    const bool has_content = n_content > 0;
    const auto n_listed = static_cast<std::uint32_t>(words.size() - n_content);
    const std::uint32_t continuities = facts & SentenceWord::kContinuity;
    if (!has_content) {
        if (detail_) where_.push_back(kNowhere);
        return;
    }
    ++n_live_;
    const auto same = std::find_if(pending_.begin(), pending_.end(),
                                   [&](const Sentence& s) { return s.bag[0] == bag[0] && s.bag[1] == bag[1]; });
    if (detail_) where_.push_back(n_judged_ + static_cast<std::size_t>(same - pending_.begin()));
    if (same != pending_.end()) {
        ++same->multiplicity;
        tokens_.resize(token_begin);
        return;
    }
    pending_.push_back({tokens_.size(), n_listed, n_unspaced, 1, continuities, {bag[0], bag[1]}});
    if (pending_.size() == kBlock + kBlock / 2) judge(kBlock);
}

RelationalLayer::Result RelationalLayer::finish() {
    const bool is_short = n_judged_ + pending_.size() < 3;
    double score = 0.0;
    if (is_short) {
        score = n_live_ ? config_.short_score : 0.0;
        distinct_scores_.assign(pending_.size(), config_.short_score);
    } else {
        judge(pending_.size());
        score = score_sum_ / static_cast<double>(n_live_);
    }
    if (detail_) {
        for (const std::size_t distinct : where_) {
            detail_->sentence_scores.push_back(distinct == kNowhere ? 0.0 : distinct_scores_[distinct]);
        }
    }
    return {score, is_short};
}

// Where the list does not know the language: the shortest words, and short ones that come back in many sentences.
void RelationalLayer::mark_profile(std::size_t n_sentences) {
    ++block_stamp_;
    std::size_t t = 0;
    for (std::uint32_t i = 0; i < n_sentences; ++i) {
        for (; t < pending_[i].token_end; ++t) {
            WordState& state = states_[tokens_[t].id];
            if (state.block_stamp != block_stamp_) {
                state.block_stamp = block_stamp_;
                state.returns = 0;
            } else if (state.last_sentence != i) {
                ++state.returns;
            }
            state.last_sentence = i;
        }
    }
    const double often = std::max(3.0, 0.15 * static_cast<double>(n_sentences));
    for (std::size_t k = 0; k < t; ++k) {
        WordState& state = states_[tokens_[k].id];
        const std::uint32_t length = count_characters(state.key);
        state.is_profile = !state.is_unspaced && (length <= 3 || (length <= 5 && state.returns + 1.0 >= often));
    }
}

BlockFactors RelationalLayer::measure(std::size_t n_sentences, bool is_unspaced) {
    ++block_stamp_;
    returns_.clear();
    std::int64_t n_tokens = 0, n_carried = 0;
    std::size_t t = 0;
    for (std::uint32_t i = 0; i < n_sentences; ++i) {
        bool after_profile = false;
        for (; t < pending_[i].token_end; ++t) {
            WordState& state = states_[tokens_[t].id];
            if (state.is_profile) {
                after_profile = true;
                continue;
            }
            ++n_tokens;
            n_carried += tokens_[t].is_carried || after_profile;
            after_profile = false;
            if (state.block_stamp != block_stamp_) {
                state.block_stamp = block_stamp_;
                state.returns = 0;
                state.tie = 0.0;
            } else if (state.last_sentence != i) {
                ++state.returns;
                returns_.push_back({tokens_[t].id, i - state.last_sentence});
            }
            state.last_sentence = i;
        }
    }

    // exp(-rate / 2) for every number of returns; the clustering sum is the logarithm of one product, rescaled in time.
    const double n = static_cast<double>(n_sentences);
    const double least = portable_exp(-config_.min_rate / 2.0);
    const double step = portable_exp(-0.5 / (n - 1.0));
    rate_roots_.resize(n_sentences);
    double root = 1.0;
    for (std::size_t k = 0; k < n_sentences; ++k, root *= step) {
        rate_roots_[k] = static_cast<double>(k) / (n - 1.0) < config_.min_rate ? least : root;
    }
    double breadth = 0.0, product = 1.0;
    int exponent = 0;
    for (const Return& r : returns_) {
        WordState& state = states_[r.id];
        product *= 1.0 - odd_power(rate_roots_[state.returns], r.gap);
        if (product < 1e-200) {
            int shift;
            product = std::frexp(product, &shift);
            exponent += shift;
        }
        if (state.tie == 0.0 && state.returns < n_sentences - 1) {  // first return of the word
            const double k = state.returns;
            const double spread = 1.0 - k / (n - 1.0);
            breadth += spread / k;
            state.tie = spread / std::sqrt(k);
        }
    }
    constexpr double kLn2 = 0.693147180559945309417;
    const double evidence = -(portable_log(product) + exponent * kLn2) - static_cast<double>(returns_.size());

    BlockFactors f{static_cast<std::int64_t>(n_sentences),
                   n_tokens,
                   0.0,
                   0.0,
                   config_.neutral_carriage,
                   continuity(n_sentences),
                   0.0};
    if (!is_unspaced) f.carriage = static_cast<double>(n_carried + 1) / static_cast<double>(n_tokens + 2);
    if (n_tokens > 0) {
        const double tokens = static_cast<double>(n_tokens);
        f.breadth = (0.5 + breadth) / tokens;
        f.clustering = evidence / tokens;
        const double z =
            config_.softness * (config_.log_scale + config_.breadth_weight * portable_log(f.breadth) +
                                config_.carriage_weight * portable_log(f.carriage) +
                                (config_.cluster_weight * f.clustering - config_.length_weight) * portable_log(n) +
                                config_.continuity_weight * f.continuity);
        f.strength = 1.0 / (1.0 + portable_exp(-std::clamp(z, -60.0, 60.0)));
    }
    return f;
}

// Do person and tense last from one sentence to the next, more than their shares alone would make them?
double RelationalLayer::continuity(std::size_t n_sentences) const noexcept {
    const double n = static_cast<double>(n_sentences);
    double sum = 0.0;
    std::uint32_t shown = 0;
    for (std::size_t i = 0; i < n_sentences; ++i) shown |= pending_[i].continuities;
    for (unsigned c = 0; c < kContinuities; ++c) {
        if (!(shown >> c & 1)) continue;  // absent everywhere: agrees exactly as often as expected
        std::uint32_t present = pending_[0].continuities >> c & 1, agreeing = 0;
        for (std::size_t i = 1; i < n_sentences; ++i) {
            present += pending_[i].continuities >> c & 1;
            agreeing += ~(pending_[i].continuities ^ pending_[i - 1].continuities) >> c & 1;
        }
        const double share = present / n;
        sum += agreeing - (n - 1.0) * (share * share + (1.0 - share) * (1.0 - share));
    }
    return sum / std::sqrt(n);
}

// Mean over window pairs of 1 - (1 - r_u)(1 - r_v), by a running sum of the 1 - r of the words in the window.
double RelationalLayer::own_mesh(std::size_t begin, std::size_t end) const noexcept {
    double loose[kMaxSentenceWords];
    std::size_t n = 0;
    double pairs = 0.0, product_sum = 0.0, in_window = 0.0;
    for (std::size_t t = begin; t < end; ++t) {
        const WordState& state = states_[tokens_[t].id];
        if (state.is_profile) continue;
        loose[n] = 1.0 - state.tie;
        if (n >= config_.window) in_window -= loose[n - config_.window];
        product_sum += loose[n] * in_window;
        in_window += loose[n];
        pairs += static_cast<double>(std::min(n, config_.window - 1));
        ++n;
    }
    if (n < 2) return n == 1 ? 1.0 - loose[0] : 0.0;
    return std::max(0.0, 1.0 - product_sum / pairs);
}

void RelationalLayer::judge(std::size_t n_sentences) {
    std::uint64_t n_words = 0, n_listed = 0, n_unspaced = 0;
    const std::size_t token_end = pending_[n_sentences - 1].token_end;
    for (std::size_t i = 0; i < n_sentences; ++i) {
        n_listed += pending_[i].n_listed;
        n_unspaced += pending_[i].n_unspaced;
    }
    n_words = n_listed + token_end;
    const bool is_unspaced = 2 * n_unspaced >= n_words;
    const bool by_profile =
        !is_unspaced && static_cast<double>(n_listed) < config_.min_listed * static_cast<double>(n_words);
    if (by_profile) mark_profile(n_sentences);
    const BlockFactors factors = measure(n_sentences, is_unspaced);

    std::size_t token_begin = 0;
    for (std::size_t i = 0; i < n_sentences; ++i) {
        const double x = own_mesh(token_begin, pending_[i].token_end);
        token_begin = pending_[i].token_end;
        const double score =
            factors.strength * (1.0 - config_.own_share + config_.own_share * (x / (x + config_.own_half)));
        score_sum_ += score * pending_[i].multiplicity;
        if (detail_) distinct_scores_.push_back(score);
    }
    if (detail_) {
        detail_->blocks.push_back(factors);
        for (const Return& r : returns_) {
            double& best = detail_->stem_scores[detail_->stem_of(states_[r.id].key)];
            best = std::max(best, factors.strength * states_[r.id].tie);
        }
    }
    if (by_profile) {
        for (std::size_t t = 0; t < token_end; ++t) states_[tokens_[t].id].is_profile = false;
    }
    n_judged_ += n_sentences;
    pending_.erase(pending_.begin(), pending_.begin() + static_cast<std::ptrdiff_t>(n_sentences));
    for (Sentence& sentence : pending_) sentence.token_end -= token_end;
    tokens_.erase(tokens_.begin(), tokens_.begin() + static_cast<std::ptrdiff_t>(token_end));
    if (n_words_ > kManyWords) forget_old_words();
}

// Keeps memory and cache use of a long text those of a short one.
void RelationalLayer::forget_old_words() {
    const std::vector<WordState> old = std::move(states_);
    states_ = {};
    n_words_ = 0;
    table_.assign(kSmallTable, 0u);
    for (Token& token : tokens_) {
        make_room(1);
        token.id = id_of(old[token.id].key, old[token.id].is_unspaced);
    }
}

}  // namespace hsca
