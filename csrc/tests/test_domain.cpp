// domain.hpp with a model made by hand: sums, breaks, thresholds, broken files, and the tags that follow from others.
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "check.hpp"
#include "hsca/text/domain.hpp"
#include "hsca/text/words.hpp"

using namespace hsca;

namespace {

using Bytes = std::vector<unsigned char>;

template <class T>
void append(Bytes& to, T value) {
    unsigned char bytes[sizeof value];
    std::memcpy(bytes, &value, sizeof value);
    to.insert(to.end(), bytes, bytes + sizeof value);
}

std::uint32_t plain_crc32(const Bytes& bytes) {
    std::uint32_t crc = ~0u;
    for (const unsigned char byte : bytes) {
        crc ^= byte;
        for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ (0xEDB88320u & (0u - (crc & 1)));
    }
    return ~crc;
}

struct Draft {
    std::uint32_t n_buckets = 8;
    std::uint32_t n_tags = 10;
    float half_length = 4.0f;
    float scale = 0.5f, bias = -1.0f, line_break = 2.0f, threshold = 0.5f;
    std::vector<std::int8_t> weights;  // [n_buckets][10]

    Draft() : weights(80) {
        for (std::size_t b = 0; b < 8; ++b) {
            for (std::size_t t = 0; t < 10; ++t) weights[b * 10 + t] = static_cast<std::int8_t>(b == t ? 20 : -1);
        }
    }

    Bytes bytes() const {
        Bytes file;
        for (const char c : std::string("HSCADOM1")) file.push_back(static_cast<unsigned char>(c));
        append(file, n_buckets);
        append(file, n_tags);
        append(file, half_length);
        for (const float number : {scale, bias, line_break, threshold}) {
            for (int t = 0; t < 10; ++t) append(file, number);
        }
        for (const std::int8_t weight : weights) file.push_back(static_cast<unsigned char>(weight));
        append(file, plain_crc32(file));
        return file;
    }
};

std::vector<SentenceWord> words_of(std::initializer_list<std::uint64_t> hashes) {
    std::vector<SentenceWord> words;
    for (const std::uint64_t hash : hashes) {
        SentenceWord word{};
        word.hash = hash;
        words.push_back(word);
    }
    return words;
}

const unsigned char* bytes_of(const std::string& text) { return reinterpret_cast<const unsigned char*>(text.data()); }

double probability(double z) { return 1.0 / (1.0 + std::exp(-z)); }

bool near(double a, double b) { return std::fabs(a - b) < 1e-12; }

void sums() {
    const DomainModel model(Draft().bytes());
    DomainLayer layer(model);
    CHECK_EQ(layer.finish().bits, kUnclassified);  // no words: the bias alone
    CHECK(near(layer.finish().scores[3], probability(-1.0)));

    const std::string text = "a b c. d";
    const auto first = words_of({3, 3, 8 + 5});  // buckets 3, 3, 5
    const auto second = words_of({0xFFFFFFFFFFFFFFF3ull});
    layer.begin();
    layer.add_sentence(bytes_of(text), 0, 6, first);
    layer.add_sentence(bytes_of(text), 7, 8, second);
    const DomainResult found = layer.finish();
    CHECK(near(found.scores[3], probability(-1.0 + 0.5 * (20 * 3 - 1) / 8)));
    CHECK(near(found.scores[5], probability(-1.0 + 0.5 * (20 - 3) / 8)));
    CHECK(near(found.scores[9], probability(-1.0 + 0.5 * -4 / 8)));
    CHECK_EQ(found.bits, with_cross_domain(1u << 3 | 1u << 5));

    // The order of sentences and words is of no account, and begin() forgets.
    layer.begin();
    layer.add_sentence(bytes_of(text), 0, 1, words_of({3}));
    layer.add_sentence(bytes_of(text), 2, 8, words_of({5, 3, 3}));
    CHECK(layer.finish().scores == found.scores);
}

void many_words() {
    Draft draft;
    for (std::size_t i = 0; i < 80; ++i) draft.weights[i] = i % 2 ? -128 : 127;
    const DomainModel model(draft.bytes());
    DomainLayer layer(model);
    std::vector<SentenceWord> words(kMaxSentenceWords);
    for (std::size_t i = 0; i < words.size(); ++i) words[i].hash = i;
    const std::string text = "x";
    for (int i = 0; i < 20'000; ++i) layer.add_sentence(bytes_of(text), 0, 1, words);  // 20 million words: past 2^31
    const DomainResult found = layer.finish();
    for (std::size_t t = 0; t < kDomains; ++t) {
        const double n = 20e6, each = t % 2 ? -128.0 : 127.0;
        const double z = std::min(30.0, std::max(-30.0, -1.0 + 0.5 * each * n / (n + 4)));
        CHECK(std::fabs(found.scores[t] - probability(z)) < 1e-12);
    }
    // A weight of one, so that the clamp hides nothing.
    for (std::int8_t& weight : draft.weights) weight = 1;
    const DomainModel ones(draft.bytes());
    DomainLayer sum_of_ones(ones);
    for (int i = 0; i < 20'000; ++i) sum_of_ones.add_sentence(bytes_of(text), 0, 1, words);
    CHECK(near(sum_of_ones.finish().scores[0], probability(-1.0 + 0.5 * 20e6 / (20e6 + 4))));
}

double breaks_in(const std::string& text, std::size_t cut = 0) {
    Draft draft;
    draft.weights.assign(80, 0);
    draft.line_break = 1.0f;
    const DomainModel model(draft.bytes());
    DomainLayer layer(model);
    if (cut) layer.add_sentence(bytes_of(text), 0, cut, {});
    layer.add_sentence(bytes_of(text), cut, text.size(), {});
    const double p = layer.finish().scores[0];
    return (std::log(p / (1.0 - p)) + 1.0) * 4.0;
}

void verse_breaks() {
    const auto count = [](const std::string& text) { return static_cast<int>(std::lround(breaks_in(text))); };
    CHECK_EQ(count("Tyger Tyger, burning bright,\nIn the forests of the night;\nWhat immortal hand or eye"), 2);
    CHECK_EQ(count("one line  \r\n  Two"), 1);
    CHECK_EQ(count("The end.\nNext"), 0);
    CHECK_EQ(count("wrapped\nprose goes on"), 0);
    CHECK_EQ(count("heading\n\nText"), 0);
    CHECK_EQ(count("\nA"), 0);
    CHECK_EQ(count("a\n"), 0);
    CHECK_EQ(count("a\nB\nC\nD"), 3);
    CHECK_EQ(count(std::string("a\0\nB", 4)), 0);
    CHECK_EQ(count(""), 0);
    // However the sentences lie, every line end is seen once.
    const std::string text = "one,\nTwo,\nThree.\nFour,\nFive";
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
        if (text[cut - 1] != '\n') CHECK_EQ(std::lround(breaks_in(text, cut)), 3);
    }
}

void broken_files() {
    const Bytes good = Draft().bytes();
    CHECK_THROWS(DomainModel(Bytes{}), std::invalid_argument);
    for (std::size_t size = 0; size < good.size(); size += 7) {
        CHECK_THROWS(DomainModel(Bytes(good.begin(), good.begin() + static_cast<std::ptrdiff_t>(size))),
                     std::invalid_argument);
    }
    for (std::size_t at = 0; at < good.size(); ++at) {
        Bytes bad = good;
        bad[at] ^= 0x10;
        CHECK_THROWS(DomainModel{bad}, std::invalid_argument);
    }
    Bytes longer = good;
    longer.push_back(0);
    CHECK_THROWS(DomainModel{longer}, std::invalid_argument);
    Draft draft;
    draft.n_tags = 11;
    CHECK_THROWS(DomainModel{draft.bytes()}, std::invalid_argument);
    draft = {};
    draft.n_buckets = 7;
    CHECK_THROWS(DomainModel{draft.bytes()}, std::invalid_argument);
    draft = {};
    draft.n_buckets = 0;
    CHECK_THROWS(DomainModel{draft.bytes()}, std::invalid_argument);
    draft = {};
    draft.n_buckets = 1u << 31;
    CHECK_THROWS(DomainModel{draft.bytes()}, std::invalid_argument);
    draft = {};
    draft.half_length = 0.0f;
    CHECK_THROWS(DomainModel{draft.bytes()}, std::invalid_argument);
    draft = {};
    draft.bias = std::numeric_limits<float>::quiet_NaN();
    CHECK_THROWS(DomainModel{draft.bytes()}, std::invalid_argument);
}

void related() {
    for (unsigned a = 0; a < kDomains; ++a) {
        CHECK(kRelatedDomains[a] >> a & 1);
        CHECK(!(kRelatedDomains[a] & ~unsigned{kContentDomains}));
        for (unsigned b = 0; b < kDomains; ++b) {
            CHECK_EQ(kRelatedDomains[a] >> b & 1, kRelatedDomains[b] >> a & 1);
            const unsigned both = 1u << a | 1u << b;
            const bool crosses = with_cross_domain(static_cast<std::uint16_t>(both)) & kCrossDomain;
            CHECK_EQ(crosses, !(kRelatedDomains[a] >> b & 1));
        }
    }
    CHECK_EQ(with_cross_domain(0), kUnclassified);
    CHECK_EQ(with_cross_domain(kCrossDomain | kUnclassified), kUnclassified);  // never taken over from the input
    CHECK_EQ(with_cross_domain(1u << 0 | 1u << 1 | 1u << 6), 1u << 0 | 1u << 1 | 1u << 6);  // physics, maths, technical
    CHECK_EQ(with_cross_domain(1u << 0 | 1u << 8), 1u << 0 | 1u << 8 | kCrossDomain);       // physics and philosophy
    CHECK_EQ(kDomainNames[10], "cross_domain");
}

}  // namespace

int main() {
    sums();
    many_words();
    verse_breaks();
    broken_files();
    related();
    return check::result();
}
