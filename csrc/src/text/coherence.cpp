#include "hsca/text/coherence.hpp"

#include <algorithm>

#include "hsca/portable_math.hpp"
#include "hsca/text/unicode.hpp"

namespace hsca {

namespace {

#include "coherence_tables.inc"

constexpr std::uint8_t kPronoun = 1, kClause = 2, kAntecedent = 4;  // properties of a class
constexpr std::size_t kLetterBytes = 8, kLongWord = 16;  // of a word no longer than the second, the first so many count

constexpr std::size_t kLetterCodes = 27;  // 0 for anything but a letter
constexpr std::size_t kEndingCodes = 28;  // with digits
static_assert(std::size(kOrder) == kClasses * kClasses && std::size(kProperties) == kClasses);
static_assert(std::size(kLetters) == kLetterCodes * kLetterCodes && std::size(kEndings) == kEndingCodes * kEndingCodes);

consteval double constant(std::string_view name) {
    for (const NamedConstant& c : kConstants) {
        if (c.name == name) return c.value;
    }
    throw "no such constant";  // does not compile
}

// 1 to 26 for a letter, 27 for a digit, 0 for anything else.
constexpr auto kEndingCode = [] {
    std::array<std::uint8_t, 256> codes{};
    for (unsigned i = 0; i < 26; ++i) codes['a' + i] = codes['A' + i] = static_cast<std::uint8_t>(i + 1);
    for (unsigned i = 0; i < 10; ++i) codes['0' + i] = 27;
    return codes;
}();

constexpr auto kLetterCode = [] {
    auto codes = kEndingCode;
    for (std::uint8_t& code : codes) code = code > 26 ? 0 : code;
    return codes;
}();

// A pair's value and, 2^kPairShift times, whether it is one: one sum serves both. By first letter + 32 second letter.
constexpr unsigned kPairShift = 20;
constexpr auto kLetterPairs = [] {
    std::array<std::int32_t, 32 * 32> pairs{};
    for (std::size_t a = 1; a < kLetterCodes; ++a) {
        for (std::size_t b = 1; b < kLetterCodes; ++b)
            pairs[a + 32 * b] = (1 << kPairShift) + kLetters[a * kLetterCodes + b];
    }
    return pairs;
}();
// The values of a sentence's words stay below half a unit.
static_assert(kMaxSentenceWords * (kLetterBytes - 1) * 64 < std::size_t{1} << (kPairShift - 1));

struct LetterSum {
    std::int64_t pairs, value;
    bool has_accent = false;  // a byte outside ASCII
};
LetterSum unpack_letters(std::int64_t sum) noexcept {
    const std::int64_t pairs = (sum + (1 << (kPairShift - 1))) >> kPairShift;
    return {pairs, sum - (pairs << kPairShift)};
}

// The pairs of eight folded bytes: letters become 1 to 26 in each byte, the rest 0.
std::int64_t letter_pairs(std::uint64_t bytes) noexcept {
    constexpr std::uint64_t kEach = 0x0101010101010101ull, kTop = kEach << 7;
    const std::uint64_t low = bytes & ~kTop;
    const std::uint64_t is_letter = (low + kEach * (0x80 - 'a')) & ~(low + kEach * (0x7F - 'z')) & ~bytes & kTop;
    const std::uint64_t codes = bytes & (is_letter >> 7) * 0x1F;
    std::int64_t sum = 0;
    for (unsigned i = 0; i < kLetterBytes - 1; ++i)
        sum += kLetterPairs[(codes >> 8 * i & 0x1F) | (codes >> (8 * i + 3) & 0x3E0)];
    return sum;
}

LetterSum letters_of_long_word(const unsigned char* word, std::size_t length) noexcept {
    LetterSum total{0, 0, word[0] >= 0x80};
    std::size_t last = kLetterCode[word[0]];
    for (std::size_t i = 1; i < length; ++i) {
        const std::size_t code = kLetterCode[word[i]];
        const LetterSum one = unpack_letters(kLetterPairs[last + 32 * code]);
        total.pairs += one.pairs;
        total.value += one.value;
        total.has_accent |= word[i] >= 0x80;
        last = code;
    }
    return total;
}

constexpr bool is_upper(unsigned char c) noexcept { return c - unsigned{'A'} < 26u; }

// Class of a word that is not listed.
std::uint32_t shape(const unsigned char* word, std::size_t length, bool is_first) noexcept {
    const std::size_t before = length > 1 ? kEndingCode[word[length - 2]] : 0;
    const std::uint32_t ending = kEndings[before * kEndingCodes + kEndingCode[word[length - 1]]];
    const bool is_title = !is_first && is_upper(word[0]) && !(length > 1 && is_upper(word[1]));
    return is_title ? kTitle : ending;
}

bool is_short(const unsigned char* word, std::size_t length) noexcept {
    return (length <= 3) & (kLetterCode[word[length - 1]] != 0);
}

// What a class adds to the counts of a sentence, sixteen bits each: no sentence has more words than they hold.
static_assert(kMaxSentenceWords < 1 << 16);
constexpr unsigned kPronounsAt = 0, kClausesAt = 16, kListedAt = 32, kAntecedentsAt = 48;
constexpr auto kClassCounts = [] {
    std::array<std::uint64_t, kClasses> counts{};
    for (std::size_t kind = 1; kind < kClasses; ++kind) {
        counts[kind] = std::uint64_t{(kProperties[kind] & kPronoun) != 0} << kPronounsAt |
                       std::uint64_t{(kProperties[kind] & kClause) != 0} << kClausesAt |
                       std::uint64_t{kind < kPause} << kListedAt |
                       std::uint64_t{(kProperties[kind] & kAntecedent) != 0} << kAntecedentsAt;
    }
    return counts;
}();
std::int64_t count_at(std::uint64_t counts, unsigned at) noexcept {
    return static_cast<std::int64_t>(counts >> at & 0xFFFF);
}

// What lies between two words: how many characters that are not space, and whether one is a stop.
struct Gap {
    std::int64_t marks = 0;
    bool has_stop = false;
};

// What a character is to a gap, as bits.
constexpr unsigned kMark = 1, kStop = 2;
unsigned gap_class(std::uint32_t code_point) noexcept {
    switch (char_class(code_point)) {
        case CharClass::space:
        case CharClass::paragraph:
            return 0;
        case CharClass::stop:
        case CharClass::wide_stop:
            return kMark | kStop;
        default:
            return kMark;
    }
}
constexpr auto kAsciiGapClass = [] {
    std::array<std::uint8_t, 128> classes{};
    classes.fill(kMark);
    for (const char c : std::string_view{" \t\n\v\f\r"}) classes[static_cast<unsigned char>(c)] = 0;
    for (const char c : std::string_view{".!?"}) classes[static_cast<unsigned char>(c)] = kMark | kStop;
    return classes;
}();

Gap look_at(const unsigned char* at, const unsigned char* end) noexcept {
    Gap gap;
    unsigned seen = 0;
    while (at < end) {
        unsigned found;
        if (*at < 0x80) {
            found = kAsciiGapClass[*at++];
        } else {
            const CodePoint c = decode_utf8(at, end);
            at += c.length;
            found = gap_class(c.value);
        }
        gap.marks += found & kMark;
        seen |= found;
    }
    gap.has_stop = seen & kStop;
    return gap;
}

// 0 up to `low`, 1 from `full` to `falls`, 0 from `none` on.
double trapezoid(double x, double low, double full, double falls, double none) noexcept {
    return std::max(0.0, std::min({1.0, (x - low) / (full - low), (none - x) / (none - falls)}));
}

double rise(double x, double low, double full) noexcept { return std::clamp((x - low) / (full - low), 0.0, 1.0); }

double sigmoid(double z) noexcept { return 1.0 / (1.0 + portable_exp(-std::clamp(z, -60.0, 60.0))); }

}  // namespace

CoherenceTables coherence_tables() noexcept {
    return {kProperties, kEndings, kLetters, kOrder, kConstants, kPause, kTitle};
}

void CoherenceLayer::begin() noexcept {
    counts_ = {};
    recent_.fill(0);
    antecedents_[0] = antecedents_[1] = false;
}

// Takes the sentence in unless it is one of the last.
bool CoherenceLayer::is_repeated(std::uint64_t hash) noexcept {
    hash |= 1;  // 0 is an empty place
    if (std::find(recent_.begin(), recent_.end(), hash) != recent_.end()) return true;
    recent_[static_cast<std::size_t>(counts_.sentences) % kMemory] = hash;
    return false;
}

// What a sentence adds that holds more than listed words and ASCII words of content.
void CoherenceLayer::add_unusual(const unsigned char* text, std::span<const SentenceWord> words,
                                 std::span<const WordPlace> places) noexcept {
    for (std::size_t i = 0; i < words.size(); ++i) {
        const bool is_listed = words[i].order_class(), is_function = words[i].facts & SentenceWord::kFunction;
        const bool is_ascii = !(words[i].facts & SentenceWord::kNotAscii);
        counts_.unspaced += (words[i].facts & SentenceWord::kUnspaced) != 0;
        counts_.ascii_words += is_ascii;
        counts_.glue += is_ascii && (is_listed || is_function || is_short(text + places[i].begin, places[i].length));
        counts_.foreign += is_function && !is_listed && words[i].length > 1;
    }
}

// One branch a word at most is hard to foretell: what depends on the kind of word is looked up or collected.
void CoherenceLayer::add_sentence(const unsigned char* text, std::size_t begin, std::size_t end,
                                  std::span<const SentenceWord> words, std::span<const WordPlace> places) noexcept {
    if (words.empty()) return;
    const std::size_t n = words.size();
    std::uint64_t hash = n;
    std::uint8_t kinds[kMaxSentenceWords];
    std::uint16_t content[kMaxSentenceWords];
    std::size_t n_content = 0;
    std::uint64_t by_class = 0;
    std::uint32_t seen = 0;  // facts of any word
    std::int64_t order = 0, marks = 0, pauses = 0;
    std::uint32_t previous = 0;
    std::size_t last_end = begin;
    for (std::size_t i = 0; i < n; ++i) {
        const SentenceWord& word = words[i];
        hash = (hash ^ word.hash) * 0x9E3779B97F4A7C15ull + (hash >> 32);
        const unsigned char* const raw = text + places[i].begin;
        const std::size_t length = places[i].length;
        if (places[i].begin > last_end && !(places[i].begin == last_end + 1 && raw[-1] == ' ')) {
            const std::int64_t found = look_at(text + last_end, raw).marks;
            marks += found;
            if (found && previous) {
                ++pauses;
                order += kOrder[previous * kClasses + kPause];
                previous = kPause;
            }
        }
        last_end = std::max(last_end, places[i].begin + length);
        const std::uint32_t listed = word.order_class();
        const std::uint32_t shaped = shape(raw, length, previous == 0);
        const std::uint32_t kind = listed ? listed : shaped;
        content[n_content] = static_cast<std::uint16_t>(i);
        n_content += !listed & !(word.facts & SentenceWord::kFunction);
        seen |= word.facts;
        kinds[i] = static_cast<std::uint8_t>(kind);
        order += kOrder[previous * kClasses + kind];
        by_class += kClassCounts[kind];
        previous = kind;
    }
    if (is_repeated(hash)) return;
    Counts& c = counts_;
    std::int64_t letter_sum = 0, short_words = 0, accented = 0;
    for (std::size_t i = 0; i < n_content; ++i) {
        const SentenceWord& word = words[content[i]];
        const WordPlace& place = places[content[i]];
        short_words += is_short(text + place.begin, place.length);
        if (word.length <= kLongWord) [[likely]] {
            letter_sum += letter_pairs(word.key.low);
            accented += ((word.key.low | word.key.high) & 0x8080808080808080ull) != 0;
        } else {
            const LetterSum sum = letters_of_long_word(text + place.begin, place.length);
            c.letter_pairs += sum.pairs;
            c.letters += sum.value;
            accented += sum.has_accent;
        }
    }
    c.accented += accented;
    const LetterSum letters = unpack_letters(letter_sum);
    c.letter_pairs += letters.pairs;
    c.letters += letters.value;

    const std::int64_t listed = count_at(by_class, kListedAt);
    const auto n_words = static_cast<std::int64_t>(n), n_contents = static_cast<std::int64_t>(n_content);
    c.words += n_words;
    c.listed += listed;
    if (listed + n_contents == n_words && !(seen & (SentenceWord::kNotAscii | SentenceWord::kUnspaced))) [[likely]] {
        c.ascii_words += n_words;
        c.glue += listed + short_words;
    } else {
        add_unusual(text, words, places);
    }

    // Nearly always somebody was named in the last two sentences.
    if (antecedents_[0] || antecedents_[1]) {
        c.resolved += count_at(by_class, kPronounsAt);
    } else {
        bool has_antecedent = false;
        for (std::size_t i = 0; i < n; ++i) {
            c.resolved += (kProperties[kinds[i]] & kPronoun) && has_antecedent;
            has_antecedent |= (kProperties[kinds[i]] & kAntecedent) != 0;
        }
    }
    antecedents_[0] = antecedents_[1];
    antecedents_[1] = count_at(by_class, kAntecedentsAt) != 0;

    const Gap tail = look_at(text + std::min(last_end, end), text + end);
    if (tail.marks) order += kOrder[previous * kClasses];
    ++c.sentences;
    c.pronouns += count_at(by_class, kPronounsAt);
    c.clause_words += count_at(by_class, kClausesAt);
    c.pauses += pauses;
    c.marks += marks + tail.marks;
    c.pairs += n_words + pauses + (tail.marks > 0);
    c.order += order;
    c.stops += tail.has_stop;
    const unsigned char first_byte = text[places[0].begin];
    c.capitals += first_byte < 0x80
                      ? first_byte - unsigned{'a'} >= 26u
                      : char_class(decode_utf8(text + places[0].begin, text + end).value) != CharClass::lower;
}

double CoherenceLayer::english_share() const noexcept {
    if (!counts_.words) return 0.0;
    return static_cast<double>(counts_.listed - counts_.foreign) / static_cast<double>(counts_.words);
}

CoherenceParts CoherenceLayer::finish() const noexcept {
    CoherenceParts r{};
    if (!counts_.words) return r;
    const auto real = [](std::int64_t count) { return static_cast<double>(count); };
    const Counts& c = counts_;
    const double n = real(c.sentences);
    const double words = real(c.words) - real(c.unspaced) / 2.0;
    r.length = trapezoid(words / n, constant("length_low"), constant("length_full"), constant("length_falls"),
                         constant("length_none"));
    r.pronouns = real(c.resolved + 1) / real(c.pronouns + 1);
    r.punctuation = trapezoid(real(c.marks) / words, constant("marks_low"), constant("marks_full"),
                              constant("marks_falls"), constant("marks_none"));
    r.clauses = trapezoid(1.0 + real(c.clause_words + c.pauses) / n, constant("clauses_low"), constant("clauses_full"),
                          constant("clauses_falls"), constant("clauses_none"));
    r.edges = real(c.capitals + c.stops) / (2.0 * n);
    r.extent = words / (words + constant("extent_half"));
    // Means of few observations are drawn to what is usual.
    const auto mean = [](double sum, double count, double prior, double weight) {
        return (sum + prior * weight) / (count + weight);
    };
    r.known = rise(mean(real(c.glue), real(c.ascii_words), constant("glue_prior"), constant("glue_words")),
                   constant("glue_low"), constant("glue_full"));
    const double letters =
        mean(real(c.letters) / 32.0, real(c.letter_pairs), constant("letters_prior"), constant("letters_pairs"));
    const double ascii =
        1.0 - rise(real(c.accented) / real(c.words), constant("accents_low"), constant("accents_full"));
    r.letters = 1.0 - ascii * (1.0 - sigmoid(constant("letters_slope") * (letters - constant("letters_middle"))));
    const double order = mean(real(c.order) / 16.0, real(c.pairs), constant("order_prior"), constant("order_pairs"));
    const double english = rise(english_share(), constant("english_low"), constant("english_full"));
    r.order = 1.0 - english * (1.0 - sigmoid(constant("order_slope") * (order - constant("order_middle"))));
    const double quality = constant("length") * r.length + constant("pronouns") * r.pronouns +
                           constant("punctuation") * r.punctuation + constant("clauses") * r.clauses +
                           constant("edges") * r.edges + constant("extent") * r.extent;
    r.score = std::min(1.0, quality * r.known * r.letters * r.order);
    return r;
}

}  // namespace hsca
