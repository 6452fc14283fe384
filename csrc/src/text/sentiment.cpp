#include "hsca/text/sentiment.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "hsca/text/token_masks.hpp"
#include "hsca/text/unicode.hpp"
#include "hsca/text/words.hpp"

namespace hsca {

namespace {

constexpr std::size_t kLongestWord = 19;  // of the lexicon

struct ValenceRow {
    char word[kLongestWord + 1];
    std::int8_t value;
};
struct PhraseRow {
    char words[16];
    std::int8_t value;
};
struct EmojiRow {
    std::uint32_t code_point;
    char description[44];
};
enum class SentimentChar : std::uint8_t {
    plain,
    upper,
    lower,  // or title case: no word of capitals has one
    space,
    replaced,  // emoji, Kelvin sign
};
#include "sentiment_lexicon.inc"

constexpr double kBoost = 0.293, kCapitals = 0.733, kNegation = -0.74;
constexpr std::uint32_t kKelvin = 0x212A;  // the one character beyond ASCII whose lower case is ASCII

SentimentChar sentiment_char(std::uint32_t cp) noexcept {
    if (cp >= std::size(kCharBlock) * 64) return SentimentChar::plain;
    return static_cast<SentimentChar>(kChar[kCharBlock[cp >> 6] * 64u + (cp & 63u)]);
}

// First bytes of the characters beyond ASCII that are white space or replaced.
constexpr bool may_be_special(unsigned char lead) noexcept {
    return lead == 0xC2 || (lead >= 0xE1 && lead <= 0xE3) || lead == 0xF0;
}

constexpr bool is_ascii_space(unsigned char c) noexcept { return (c >= 9 && c <= 13) || (c >= 28 && c <= 32); }

constexpr bool is_ascii_punctuation(unsigned char c) noexcept {
    return (c >= 0x21 && c <= 0x2F) || (c >= 0x3A && c <= 0x40) || (c >= 0x5B && c <= 0x60) || (c >= 0x7B && c <= 0x7E);
}

// Eight bytes at a time; the answers are in the bytes' top bits.
constexpr std::uint64_t every(std::uint64_t byte) noexcept { return byte * 0x0101010101010101ull; }
constexpr std::uint64_t kTop = every(0x80);

// Bytes from lo to hi, of `low` = bytes & 0x7F; bytes beyond ASCII are to be masked out by the caller.
constexpr std::uint64_t in_range(std::uint64_t low, std::uint64_t lo, std::uint64_t hi) noexcept {
    return (low + every(0x80 - lo)) & ~(low + every(0x7F - hi));
}

constexpr std::uint64_t lower_ascii(std::uint64_t bytes) noexcept {
    return bytes | (in_range(bytes & ~kTop, 'A', 'Z') & ~bytes & kTop) >> 2;
}

// Of the first 16 bytes, letters without their case. Tokens with the same hash need not be equal.
std::uint32_t hash_of(const WordKey& key, std::size_t length) noexcept {
    const WordKey& mask = kKeyMask[std::min<std::size_t>(length, 16)];
    const std::uint64_t low = (key.low | every(0x20)) & mask.low, high = (key.high | every(0x20)) & mask.high;
    return static_cast<std::uint32_t>((low ^ high * 0xC2B2AE3D27D4EB4Full) * 0x9E3779B97F4A7C15ull >> 32);
}

// A set of hashes that takes a few others for its own.
template <unsigned Bits>
class HashFilter {
  public:
    bool may_hold(std::uint32_t hash) const noexcept {
        return bytes_[hash >> (35 - Bits)] >> (hash >> (32 - Bits) & 7) & 1;
    }
    void add(std::uint32_t hash) noexcept {
        bytes_[hash >> (35 - Bits)] |= static_cast<std::uint8_t>(1u << (hash >> (32 - Bits) & 7));
    }

  private:
    std::array<std::uint8_t, (std::size_t{1} << Bits) / 8> bytes_{};
};

// Words that a rule names.
enum class Named : std::uint8_t {
    none,
    no,
    or_,
    nor,
    least,
    at,
    very,
    never,
    so,
    this_,
    without,
    doubt,
    kind,
    of,
    but
};
constexpr std::pair<const char*, Named> kNamed[] = {
    {"no", Named::no},      {"or", Named::or_},          {"nor", Named::nor},     {"least", Named::least},
    {"at", Named::at},      {"very", Named::very},       {"never", Named::never}, {"so", Named::so},
    {"this", Named::this_}, {"without", Named::without}, {"doubt", Named::doubt}, {"kind", Named::kind},
    {"of", Named::of},      {"but", Named::but},
};

}  // namespace

struct SentimentScorer::Entry {
    static constexpr std::uint8_t kListed = 1, kAbsent = 2, kNegates = 4, kOpensPhrase = 8, kContinuesPhrase = 16;

    WordKey key{0, 0};       // the first 16 bytes
    std::uint32_t tail = 0;  // the next four
    std::uint8_t length = 0;
    std::uint8_t facts = 0;
    Named named = Named::none;
    std::int8_t boost = 0;
    double valence = 0.0;

    bool is(Named word) const noexcept { return named == word; }
};

class SentimentLexicon {
  public:
    using Entry = SentimentScorer::Entry;

    static const SentimentLexicon& get() {
        static const SentimentLexicon lexicon;
        return lexicon;
    }

    // Every token that has a valence, and "but", pass; few others do.
    bool may_matter(std::uint32_t hash) const noexcept { return judged_.may_hold(hash); }
    // Has find() anything to say of a token?
    bool may_be_known(std::uint32_t hash) const noexcept { return judged_.may_hold(hash) || modifiers_.may_hold(hash); }

    const Entry& find(const unsigned char* token, std::size_t length, std::uint32_t hash,
                      const unsigned char* end_of_text) const noexcept {
        for (std::size_t slot = slot_of(hash); slots_[slot].number; slot = (slot + 1) % kSlots) {
            if (slots_[slot].tag != tag_of(hash)) continue;
            const Entry& entry = entries_[slots_[slot].number - 1];
            if (entry.length == length && is_same(entry, token, end_of_text)) return entry;
        }
        return plain;
    }

    // The idiom of two or three words: its valence, nullptr for none.
    const double* idiom(const Entry& a, const Entry& b) const noexcept { return phrase(idioms_, a, b, nullptr); }
    const double* idiom(const Entry& a, const Entry& b, const Entry& c) const noexcept {
        return phrase(idioms_, a, b, &c);
    }
    bool weakens(const Entry& a, const Entry& b) const noexcept { return phrase(weakening_, a, b, nullptr); }

    // Description of an emoji; empty for the Kelvin sign.
    static std::string_view description(std::uint32_t code_point) noexcept {
        const auto* row = std::lower_bound(std::begin(kEmoji), std::end(kEmoji), code_point,
                                           [](const EmojiRow& r, std::uint32_t cp) { return r.code_point < cp; });
        return row != std::end(kEmoji) && row->code_point == code_point ? row->description : std::string_view{};
    }

    static const Entry plain, absent;

  private:
    static constexpr std::size_t kSlots = 16384;
    struct Slot {
        std::uint16_t number;  // of the entry + 1, 0 for a free slot
        std::uint16_t tag;     // tells most other tokens from the entry without a look at it
    };
    struct Phrase {
        const Entry* words[3];
        double value;
    };

    static std::size_t slot_of(std::uint32_t hash) noexcept { return hash / (0x100000000ull / kSlots); }

    static std::uint16_t tag_of(std::uint32_t hash) noexcept { return static_cast<std::uint16_t>(hash); }

    SentimentLexicon() {
        entries_.reserve(std::size(kValences) + std::size(kBoosters) + std::size(kNegations) + std::size(kNamed) +
                         3 * (std::size(kIdioms) + std::size(kWeakeningPairs)));
        for (const ValenceRow& row : kValences) {
            Entry& entry = add(row.word, judged_);
            entry.facts |= Entry::kListed;
            entry.valence = row.value / 10.0;
        }
        for (const ValenceRow& row : kBoosters) add(row.word, modifiers_).boost = row.value;
        for (const ValenceRow& row : kNegations) add(row.word, modifiers_).facts |= Entry::kNegates;
        for (const auto& [word, named] : kNamed) add(word, modifiers_).named = named;
        add("but", judged_);
        for (const PhraseRow& row : kIdioms) idioms_.push_back(add_phrase(row.words, row.value / 10.0));
        for (const PhraseRow& row : kWeakeningPairs) weakening_.push_back(add_phrase(row.words, 0.0));
    }

    static bool is_same(const Entry& entry, const unsigned char* token, const unsigned char* end_of_text) noexcept {
        const std::size_t in_key = std::min<std::size_t>(entry.length, 16);
        WordKey key{0, 0};
        if (end_of_text - token >= 16) [[likely]] {
            std::memcpy(&key, token, 16);
        } else {
            std::memcpy(&key, token, in_key);
        }
        const WordKey& mask = kKeyMask[in_key];
        return (lower_ascii(key.low) & mask.low) == entry.key.low &&
               (lower_ascii(key.high) & mask.high) == entry.key.high &&
               (entry.length <= 16 || entry.tail == tail_of(token, entry.length));
    }

    static std::uint32_t tail_of(const unsigned char* token, std::size_t length) noexcept {
        std::uint32_t tail = 0;
        std::memcpy(&tail, token + 16, length - 16);
        return static_cast<std::uint32_t>(lower_ascii(tail));
    }

    template <class Filter>
    Entry& add(std::string_view word, Filter& filter) {
        WordKey key{0, 0};
        std::memcpy(&key, word.data(), std::min<std::size_t>(word.size(), 16));
        const std::uint32_t hash = hash_of(key, word.size());
        filter.add(hash);
        const auto* bytes = reinterpret_cast<const unsigned char*>(word.data());
        const Entry& known = find(bytes, word.size(), hash, bytes + word.size());
        if (&known != &plain) return entries_[static_cast<std::size_t>(&known - entries_.data())];
        Entry entry;
        entry.key = key;
        if (word.size() > 16) entry.tail = tail_of(bytes, word.size());
        entry.length = static_cast<std::uint8_t>(word.size());
        entries_.push_back(entry);
        std::size_t slot = slot_of(hash);
        while (slots_[slot].number) slot = (slot + 1) % kSlots;
        slots_[slot] = {static_cast<std::uint16_t>(entries_.size()), tag_of(hash)};
        return entries_.back();
    }

    Phrase add_phrase(std::string_view words, double value) {
        Phrase made{{nullptr, nullptr, nullptr}, value};
        for (const Entry*& word : made.words) {
            const std::size_t end = std::min(words.find(' '), words.size());
            if (end == 0) break;
            Entry& entry = add(words.substr(0, end), modifiers_);
            entry.facts |= &word == made.words ? Entry::kOpensPhrase : Entry::kContinuesPhrase;
            word = &entry;
            words.remove_prefix(std::min(end + 1, words.size()));
        }
        return made;
    }

    static const double* phrase(const std::vector<Phrase>& phrases, const Entry& a, const Entry& b,
                                const Entry* c) noexcept {
        if (!(a.facts & Entry::kOpensPhrase) || !(b.facts & Entry::kContinuesPhrase)) return nullptr;
        for (const Phrase& p : phrases) {
            if (p.words[0] == &a && p.words[1] == &b && p.words[2] == c) return &p.value;
        }
        return nullptr;
    }

    HashFilter<17> judged_;
    HashFilter<13> modifiers_;
    std::array<Slot, kSlots> slots_{};
    std::vector<Entry> entries_;  // never moves: phrases point into it
    std::vector<Phrase> idioms_, weakening_;
};

const SentimentLexicon::Entry SentimentLexicon::plain{};
const SentimentLexicon::Entry SentimentLexicon::absent{.facts = Entry::kAbsent};

SentimentScorer::SentimentScorer() : lexicon_(SentimentLexicon::get()) {}

void SentimentScorer::begin(const unsigned char* text, std::size_t size) {
    text_ = text;
    size_ = size;
    std::fill_n(tokens_.begin(), kLookBack, Token{0, 0, 0});
    n_tokens_ = kLookBack;
    n_candidates_ = 0;
    has_other_case_ = Answer::unknown;
    values_.clear();
    places_.clear();
    but_at_ = kNoBut;
    replacements_.clear();
}

double SentimentScorer::score(std::string_view text, std::vector<SentimentToken>* out) {
    if (out) out->clear();
    begin(reinterpret_cast<const unsigned char*>(text.data()), text.size());
    scan();
    if (values_.empty()) return 0.0;
    if (but_at_ != kNoBut) weigh_around_but();
    if (out) explain_tokens(*out);
    double sum = 0.0;
    for (const double value : values_) sum += value;
    if (sum == 0.0) return 0.0;
    sum += sum > 0.0 ? emphasis() : -emphasis();
    return std::clamp(sum / std::sqrt(sum * sum + 15.0), -1.0, 1.0);
}

// Finds the tokens in windows of 64 bytes that begin where a token does, so that each lies in one window.
void SentimentScorer::scan() {
    constexpr std::size_t kWindow = 64, kPadded = kWindow + 16;  // a key is read from the window's last byte on
    unsigned char tail[kPadded];
    for (std::size_t at = 0; at < size_;) {
        const std::size_t rest = size_ - at;
        const unsigned char* window = text_ + at;
        if (rest < kPadded) {
            std::memset(tail, ' ', kPadded);
            std::memcpy(tail, window, rest);
            window = tail;
        }
        TokenMasks masks = token_masks(window);
        std::size_t limit = std::min(rest, kWindow);
        for (std::uint64_t high = masks.high; high; high &= high - 1) {
            const auto bit = static_cast<std::size_t>(std::countr_zero(high));
            if (!may_be_special(window[bit])) continue;
            const CodePoint c = decode_utf8(text_ + at + bit, text_ + size_);
            const SentimentChar kind = sentiment_char(c.value);
            if (kind == SentimentChar::replaced) {
                limit = 0;
                break;
            }
            if (kind != SentimentChar::space) continue;
            if (bit + c.length > kWindow) {
                limit = bit;  // the next window has all of it
                break;
            }
            masks.space |= ((1ull << c.length) - 1) << bit;
            masks.core &= ~masks.space;
        }
        if (limit == 0) [[unlikely]] {
            expand(at);
            continue;
        }

        const std::uint64_t body = ~masks.space & ~0ull >> (kWindow - limit);
        std::uint64_t starts = body & ~(body << 1), ends = ~body & body << 1;
        std::size_t next = at + limit;
        if (limit < rest && body >> (limit - 1)) {  // the last token may go on
            const std::size_t open = kWindow - 1 - static_cast<std::size_t>(std::countl_zero(starts));
            next = at + open;
            starts ^= 1ull << open;
            if (open == 0) {
                if (!find_end_of_long_token(next)) {
                    expand(at);
                    continue;
                }
                add_long_token(at, next);
            }
        }
        std::size_t n = n_tokens_, n_candidates = n_candidates_;
        std::uint64_t core = masks.core & body;
        while (starts) {
            const std::uint64_t start_bit = starts & (0 - starts),
                                end_bit = ends & (0 - ends);  // no bit: the text's end
            const std::uint64_t own = core & (end_bit - 1);   // earlier tokens have taken theirs
            // A word of three bytes or more loses what is around it. Which it is is a coin toss: no branch depends on
            // it.
            const std::uint64_t first_two = (own & (0 - own)) * 3;
            const std::uint64_t raw = 0 - static_cast<std::uint64_t>((own & ~first_two) == 0);
            const auto begin = static_cast<std::size_t>(std::countr_zero(own | (start_bit & raw)));
            const auto length = static_cast<std::size_t>(64 - std::countl_zero(own | ((end_bit - 1) & raw))) - begin;
            starts ^= start_bit;
            ends ^= end_bit;
            core ^= own;
            WordKey key;
            std::memcpy(&key, window + begin, 16);
            const std::uint32_t hash = hash_of(key, length);
            tokens_[n] = {at + begin, static_cast<std::uint32_t>(length), hash};
            candidates_[n_candidates] = static_cast<std::uint32_t>(n);
            n_candidates += lexicon_.may_matter(hash);
            ++n;
        }
        n_tokens_ = n;
        n_candidates_ = n_candidates;
        if (n + kMostInWindow > tokens_.size()) judge(false);
        at = next;
    }
    judge(true);
}

// `at` begins a token of at least 61 bytes and becomes its end. False when a character must be replaced first.
bool SentimentScorer::find_end_of_long_token(std::size_t& at) const noexcept {
    for (; at < size_ && !is_ascii_space(text_[at]); ++at) {
        if (!may_be_special(text_[at])) continue;
        const SentimentChar kind = sentiment_char(decode_utf8(text_ + at, text_ + size_).value);
        if (kind == SentimentChar::replaced) return false;
        if (kind == SentimentChar::space) break;
    }
    return true;
}

void SentimentScorer::add_long_token(std::size_t begin, std::size_t end) {
    std::size_t first = begin, last = end;
    while (first < last && is_ascii_punctuation(text_[first])) ++first;
    while (first < last && is_ascii_punctuation(text_[last - 1])) --last;
    if (last - first > 2) {
        begin = first;
        end = last;
    }
    WordKey key{0, 0};
    std::memcpy(&key, text_ + begin, std::min<std::size_t>(end - begin, 16));
    const auto length = static_cast<std::uint32_t>(std::min<std::size_t>(end - begin, 0xFFFFFFFFu));
    tokens_[n_tokens_] = {begin, length, hash_of(key, length)};
    candidates_[n_candidates_++] = static_cast<std::uint32_t>(n_tokens_++);
}

// Values of the candidates whose neighbours are all known.
void SentimentScorer::judge(bool is_end) {
    const std::size_t known = is_end ? n_tokens_ : n_tokens_ - kLookAhead;
    if (is_end) std::fill_n(tokens_.begin() + static_cast<std::ptrdiff_t>(n_tokens_), kLookAhead, Token{0, 0, 0});
    std::size_t k = 0;
    for (; k < n_candidates_ && candidates_[k] < known; ++k) {
        const std::size_t i = candidates_[k];
        const Token& token = tokens_[i];
        const Entry& entry = lexicon_.find(text_ + token.begin, token.length, token.hash, text_ + size_);
        if (entry.facts & Entry::kListed) {
            const double value = valence_of(i, entry);
            if (value != 0.0) {
                values_.push_back(value);
                places_.push_back(token);
            }
        } else if (entry.is(Named::but) && but_at_ == kNoBut) {
            but_at_ = values_.size();
        }
    }
    if (is_end) return;
    const std::size_t gone = known - kLookBack;
    std::copy(tokens_.begin() + static_cast<std::ptrdiff_t>(gone),
              tokens_.begin() + static_cast<std::ptrdiff_t>(n_tokens_), tokens_.begin());
    n_tokens_ -= gone;
    const std::size_t left = n_candidates_ - k;
    for (std::size_t c = 0; c < left; ++c) candidates_[c] = candidates_[k + c] - static_cast<std::uint32_t>(gone);
    n_candidates_ = left;
}

inline const SentimentScorer::Entry& SentimentScorer::entry_of(const Token& token) const noexcept {
    if (!token.length) return SentimentLexicon::absent;
    if (!lexicon_.may_be_known(token.hash)) return SentimentLexicon::plain;
    return lexicon_.find(text_ + token.begin, token.length, token.hash, text_ + size_);
}

double SentimentScorer::valence_of(std::size_t i, const Entry& word) {
    const Token* tokens = tokens_.data() + i;
    const Entry* before[kLookBack + 1] = {&word, &entry_of(tokens[-1]), &entry_of(tokens[-2]), &entry_of(tokens[-3])};
    double valence = word.valence;
    if (word.is(Named::kind) && entry_of(tokens[1]).is(Named::of)) return 0.0;
    if (word.is(Named::no) && (entry_of(tokens[1]).facts & Entry::kListed)) valence = 0.0;
    if (before[1]->is(Named::no) || before[2]->is(Named::no) ||
        (before[3]->is(Named::no) && (before[1]->is(Named::or_) || before[1]->is(Named::nor)))) {
        valence = word.valence * kNegation;
    }
    if (is_emphasis(tokens[0])) valence += valence > 0.0 ? kCapitals : -kCapitals;

    const auto is_so_or_this = [](const Entry& e) { return e.is(Named::so) || e.is(Named::this_); };
    for (std::size_t back = 1; back <= kLookBack; ++back) {
        const Entry& other = *before[back];
        if (other.facts & (Entry::kListed | Entry::kAbsent)) continue;
        const Token& token = *(tokens - back);
        if (other.boost) {
            constexpr double kFading[] = {1.0, 0.95, 0.9};
            double by = other.boost > 0 ? kBoost : -kBoost;
            if (valence < 0.0) by = -by;
            if (is_emphasis(token)) by += valence > 0.0 ? kCapitals : -kCapitals;
            valence += by * kFading[back - 1];
        }
        const bool is_never = other.is(Named::never), is_without = other.is(Named::without);
        if (back == 2 && is_never && is_so_or_this(*before[1])) {
            valence *= 1.25;
        } else if (back == 2 && is_without && before[1]->is(Named::doubt)) {
        } else if (back == 3 && ((is_never && is_so_or_this(*before[2])) || is_so_or_this(*before[1]))) {
            valence *= 1.25;
        } else if (back == 3 && is_without && (before[2]->is(Named::doubt) || before[1]->is(Named::doubt))) {
        } else if (is_negation(other, token)) {
            valence *= kNegation;
        }
        if (back < 3) continue;
        const double* idiom = lexicon_.idiom(*before[1], word);
        if (!idiom) idiom = lexicon_.idiom(*before[2], *before[1], word);
        if (!idiom) idiom = lexicon_.idiom(*before[2], *before[1]);
        if (!idiom) idiom = lexicon_.idiom(*before[3], *before[2], *before[1]);
        if (!idiom) idiom = lexicon_.idiom(*before[3], *before[2]);
        if (word.facts & Entry::kOpensPhrase) {
            const Entry& next = entry_of(tokens[1]);
            if (const double* found = lexicon_.idiom(word, next)) idiom = found;
            if (const double* found = lexicon_.idiom(word, next, entry_of(tokens[2]))) idiom = found;
        }
        if (idiom) valence = *idiom;
        if (lexicon_.weakens(*before[3], *before[2])) valence -= kBoost;
        if (lexicon_.weakens(*before[2], *before[1])) valence -= kBoost;
    }
    if (before[1]->is(Named::least) && !before[2]->is(Named::at) && !before[2]->is(Named::very)) valence *= kNegation;
    return valence;
}

// Listed, or with "n't" anywhere in it.
bool SentimentScorer::is_negation(const Entry& entry, const Token& token) const noexcept {
    if (entry.facts & Entry::kNegates) return true;
    const unsigned char* const begin = text_ + token.begin;
    const unsigned char* const end = begin + token.length;
    if (token.length < 3) return false;
    if (token.length <= 16 && text_ + size_ - begin >= 16) {  // is there an apostrophe at all?
        std::uint64_t halves[2];
        std::memcpy(halves, begin, 16);
        std::uint64_t found = 0;
        for (const std::uint64_t half : halves) {
            const std::uint64_t x = half ^ every('\'');
            found |= (x - every(1)) & ~x & kTop;
        }
        if (!found) return false;
    }
    for (const unsigned char* p = begin + 1; p + 1 < end; ++p) {
        if (*p == '\'' && (p[-1] | 0x20) == 'n' && (p[1] | 0x20) == 't') return true;
    }
    return false;
}

bool SentimentScorer::is_upper(const Token& token) const noexcept {
    const unsigned char* const end = text_ + token.begin + token.length;
    if (end[-1] >= 'a' && end[-1] <= 'z') return false;
    bool has_upper = false;
    for (const unsigned char* p = text_ + token.begin; p < end;) {
        const CodePoint c = decode_utf8(p, end);
        const SentimentChar kind = sentiment_char(c.value);
        if (kind == SentimentChar::lower) return false;
        has_upper |= kind == SentimentChar::upper;
        p += c.length;
    }
    return has_upper;
}

// In capitals, and not all of the text is.
bool SentimentScorer::is_emphasis(const Token& token) {
    if (has_other_case_ == Answer::no || !is_upper(token)) return false;
    if (has_other_case_ == Answer::unknown) has_other_case_ = has_other_case() ? Answer::yes : Answer::no;
    return has_other_case_ == Answer::yes;
}

bool SentimentScorer::has_other_case() const noexcept {
    for (std::size_t at = 0; at < size_;) {
        bool has_upper = false, is_token = false;
        while (at < size_) {
            const CodePoint c = decode_utf8(text_ + at, text_ + size_);
            const SentimentChar kind = sentiment_char(c.value);
            at += c.length;
            if (kind == SentimentChar::space) break;
            // Every description has a small letter.
            if (kind == SentimentChar::lower || (kind == SentimentChar::replaced && c.value != kKelvin)) return true;
            is_token = true;
            has_upper |= kind == SentimentChar::upper || c.value == kKelvin;
        }
        if (is_token && !has_upper) return true;
    }
    return false;
}

// Goes on in a copy of the text with emoji as their descriptions, set off by a space from what is before them (not from
// what follows). There are none before `from`: places found up to there stay good.
void SentimentScorer::expand(std::size_t from) {
    expanded_.clear();
    std::size_t copied = 0;
    for (std::size_t at = from; at < size_;) {
        std::uint64_t eight;
        if (size_ - at >= 8 && (std::memcpy(&eight, text_ + at, 8), (eight & kTop) == 0)) {
            at += 8;
            continue;
        }
        if (!may_be_special(text_[at])) {
            ++at;
            continue;
        }
        const CodePoint c = decode_utf8(text_ + at, text_ + size_);
        if (sentiment_char(c.value) == SentimentChar::replaced) {
            const bool is_after_space = at == 0 || (copied < at && text_[at - 1] == ' ');
            expanded_.insert(expanded_.end(), text_ + copied, text_ + at);
            const bool is_kelvin = c.value == kKelvin;
            if (!is_kelvin && !is_after_space) expanded_.push_back(' ');
            const std::string_view instead = is_kelvin ? "K" : SentimentLexicon::description(c.value);
            const std::size_t begin = expanded_.size();
            expanded_.insert(expanded_.end(), instead.begin(), instead.end());
            copied = at + c.length;
            replacements_.push_back({begin, expanded_.size(), at, copied});
        }
        at += c.length;
    }
    expanded_.insert(expanded_.end(), text_ + copied, text_ + size_);
    text_ = expanded_.data();
    size_ = expanded_.size();
}

// For each value in turn: the first one equal to it is halved before the "but" and raised by half after it.
void SentimentScorer::weigh_around_but() {
    constexpr std::size_t kFew = 48;
    if (values_.size() > kFew) return weigh_many_around_but();
    for (std::size_t j = 0; j < values_.size(); ++j) {
        std::size_t first = 0;
        while (values_[first] != values_[j]) ++first;
        values_[first] *= first < but_at_ ? 0.5 : 1.5;
    }
}

// The same without a search for each value. Only what some value was at first is ever looked for, and that is a short
// list: the places that now hold one of these form a heap (a skew heap, as heaps merge). Most heaps stay empty.
void SentimentScorer::weigh_many_around_but() {
    constexpr std::size_t kNone = ~std::size_t{0};
    numbers_.clear();
    kinds_.clear();
    kind_of_.clear();
    for (const double value : values_) {
        const auto [entry, is_new] = numbers_.try_emplace(std::bit_cast<std::uint64_t>(value), kinds_.size());
        if (is_new) kinds_.push_back({value, kNone, kNone, kNone});
        kind_of_.push_back(entry->second);
    }
    const auto number_of = [this](double value) {
        const auto entry = numbers_.find(std::bit_cast<std::uint64_t>(value));
        return entry == numbers_.end() ? kNone : entry->second;
    };
    for (ValueKind& kind : kinds_) {
        kind.halved = number_of(kind.value * 0.5);
        kind.raised = number_of(kind.value * 1.5);
    }

    left_.assign(values_.size(), kNone);
    right_.assign(values_.size(), kNone);
    const auto merge = [this](std::size_t a, std::size_t b) {
        std::size_t root = kNone;
        std::size_t* link = &root;
        while (a != kNone && b != kNone) {
            if (b < a) std::swap(a, b);
            *link = a;
            const std::size_t rest = right_[a];
            right_[a] = left_[a];
            link = &left_[a];
            a = rest;
        }
        *link = a != kNone ? a : b;
        return root;
    };
    for (std::size_t j = 0; j < values_.size(); ++j) {
        ValueKind& kind = kinds_[kind_of_[j]];
        std::size_t first = j;
        if (kind.heap != kNone) {
            first = kind.heap;
            kind.heap = merge(merge(left_[first], right_[first]), j);
            left_[first] = right_[first] = kNone;
        }
        const bool is_before = first < but_at_;
        values_[first] *= is_before ? 0.5 : 1.5;
        const std::size_t becomes = is_before ? kind.halved : kind.raised;
        if (becomes != kNone) kinds_[becomes].heap = merge(kinds_[becomes].heap, first);
    }
}

double SentimentScorer::emphasis() const noexcept {
    const auto count = [this](char mark, std::size_t most) {
        std::size_t n = 0;
        const auto* const end = text_ + size_;
        for (const unsigned char* p = text_; n < most; ++p, ++n) {
            p = static_cast<const unsigned char*>(std::memchr(p, mark, static_cast<std::size_t>(end - p)));
            if (!p) break;
        }
        return n;
    };
    const std::size_t exclamations = count('!', 4), questions = count('?', 4);
    const double by_questions = questions <= 1 ? 0.0 : questions <= 3 ? static_cast<double>(questions) * 0.18 : 0.96;
    return static_cast<double>(exclamations) * 0.292 + by_questions;
}

void SentimentScorer::explain_tokens(std::vector<SentimentToken>& out) const {
    // Replacements come in order, and so do tokens; a token may reach from the text into a description and back.
    const auto original = [this](std::size_t at, bool is_end) {
        const auto after = std::upper_bound(replacements_.begin(), replacements_.end(), at,
                                            [](std::size_t place, const Replacement& r) { return place < r.begin; });
        if (after == replacements_.begin()) return at + is_end;
        const Replacement& last = *(after - 1);
        if (at < last.end) return is_end ? last.original_end : last.original_begin;
        return last.original_end + (at - last.end) + is_end;
    };
    for (std::size_t i = 0; i < values_.size(); ++i) {
        const Token& place = places_[i];
        out.push_back({original(place.begin, false), original(place.begin + place.length - 1, true), values_[i]});
    }
}

void sentiment_compounds(std::span<const std::string_view> texts, std::span<double> out) {
    if (texts.size() != out.size()) throw std::invalid_argument("there must be one score a text");
    SentimentScorer scorer;
    for (std::size_t i = 0; i < texts.size(); ++i) out[i] = scorer.compound(texts[i]);
}

}  // namespace hsca
