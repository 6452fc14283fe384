#include "hsca/text/domain.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <string>
#include <utility>

#include "hsca/portable_math.hpp"

namespace hsca {

namespace {

enum Domain : unsigned {
    physics,
    mathematics,
    legal,
    medical,
    poetry,
    narrative,
    technical_prose,
    conversational,
    philosophical,
    historical
};

constexpr std::pair<Domain, Domain> kRelatedPairs[] = {
    {physics, mathematics},      // the language it is written in
    {physics, technical_prose},  // the manner of reports and manuals
    {mathematics, technical_prose}, {medical, technical_prose}, {poetry, narrative},  // ballads and epics
    {narrative, historical},                                                          // history is told
};

constexpr std::array<std::uint16_t, kDomains> related_domains() {
    std::array<std::uint16_t, kDomains> found{};
    const auto relate = [&found](unsigned a, unsigned b) {
        found[a] = static_cast<std::uint16_t>(found[a] | 1u << b);
        found[b] = static_cast<std::uint16_t>(found[b] | 1u << a);
    };
    for (unsigned tag = 0; tag < kDomains; ++tag) {
        relate(tag, tag);
        relate(tag, conversational);
    }
    for (const auto& [a, b] : kRelatedPairs) relate(a, b);
    return found;
}

std::uint32_t crc32(std::span<const unsigned char> bytes) noexcept {
    static constexpr auto kTable = [] {
        std::array<std::uint32_t, 256> table{};
        for (std::uint32_t i = 0; i < 256; ++i) {
            std::uint32_t c = i;
            for (int bit = 0; bit < 8; ++bit) c = (c & 1) ? 0xEDB88320u ^ c >> 1 : c >> 1;
            table[i] = c;
        }
        return table;
    }();
    std::uint32_t crc = ~0u;
    for (const unsigned char byte : bytes) crc = kTable[(crc ^ byte) & 0xFF] ^ crc >> 8;
    return ~crc;
}

[[noreturn]] void reject(const std::string& why) { throw std::invalid_argument("domain model: " + why); }

template <class T>
T read(std::span<const unsigned char> file, std::size_t at) noexcept {
    T value;
    std::memcpy(&value, file.data() + at, sizeof value);
    return value;
}

constexpr bool is_blank(unsigned char c) noexcept { return c == ' ' || c == '\t' || c == '\r'; }

// A byte that a line of verse ends with when the sentence goes on.
constexpr bool goes_on(unsigned char c) noexcept {
    return (c | 0x20u) - 'a' < 26u || c == ',' || c == ';' || c == ':' || c == '-';
}

}  // namespace

constexpr std::array<std::uint16_t, kDomains> kRelatedDomains = related_domains();

std::uint16_t with_cross_domain(std::uint16_t tags) noexcept {
    tags &= kContentDomains;
    if (!tags) return kUnclassified;
    for (unsigned rest = tags; rest; rest &= rest - 1) {
        if (tags & ~kRelatedDomains[static_cast<unsigned>(std::countr_zero(rest))]) {
            return static_cast<std::uint16_t>(tags | kCrossDomain);
        }
    }
    return tags;
}

DomainModel::DomainModel(std::span<const unsigned char> file) {
    constexpr std::string_view kMagic = "HSCADOM1";
    constexpr std::size_t kHeader = kMagic.size() + 3 * 4, kNumbers = 4 * kDomains * 4, kChecksum = 4;
    if (file.size() < kHeader + kNumbers + kChecksum) reject("the file is too short");
    if (std::memcmp(file.data(), kMagic.data(), kMagic.size()) != 0) reject("the file does not begin with HSCADOM1");
    const auto n_buckets = read<std::uint32_t>(file, 8);
    const auto n_tags = read<std::uint32_t>(file, 12);
    if (n_tags != kDomains) reject("it has " + std::to_string(n_tags) + " tags, not 10");
    if (!std::has_single_bit(n_buckets) || n_buckets > 1u << 20) {
        reject("the number of buckets, " + std::to_string(n_buckets) + ", is not a power of two up to 2^20");
    }
    const std::size_t size = kHeader + kNumbers + std::size_t{n_buckets} * kDomains + kChecksum;
    if (file.size() != size) {
        reject("the file has " + std::to_string(file.size()) + " bytes, not " + std::to_string(size));
    }
    if (crc32(file.first(size - kChecksum)) != read<std::uint32_t>(file, size - kChecksum)) {
        reject("the checksum does not match");
    }
    std::size_t at = kHeader;
    half_length_ = static_cast<double>(read<float>(file, 16));
    bool is_finite = half_length_ > 0.0 && std::isfinite(half_length_);
    for (auto* numbers : {&scale_, &bias_, &break_, &threshold_}) {
        for (double& number : *numbers) {
            number = static_cast<double>(read<float>(file, at));
            is_finite = is_finite && std::isfinite(number);
            at += 4;
        }
    }
    if (!is_finite) reject("a number is not finite, or half_length is not positive");
    rows_.resize(n_buckets);
    for (Row& row : rows_) {
        std::memset(row.weights, 0, sizeof row.weights);
        std::memcpy(row.weights, file.data() + at, kDomains);
        at += kDomains;
    }
}

double DomainModel::margin(std::size_t t) const noexcept {
    const double share = std::clamp(threshold_[t], 1e-9, 1.0 - 1e-9);
    return bias_[t] - portable_log(share / (1.0 - share));
}

void DomainLayer::begin() noexcept {
    sums_.fill(0);
    n_words_ = n_breaks_ = 0;
    seen_ = 0;
}

void DomainLayer::add_sentence(const unsigned char* text, std::size_t, std::size_t end,
                               std::span<const SentenceWord> words) noexcept {
    constexpr std::size_t kLanes = DomainModel::kLanes;
    constexpr std::size_t kBatch = 256;  // 256 * 128 = 32768: the most that sixteen bits hold, below zero
    const DomainModel::Row* const rows = model_->rows_.data();
    const std::uint64_t mask = model_->rows_.size() - 1;
    for (std::size_t first = 0; first < words.size(); first += kBatch) {
        const std::size_t last = std::min(first + kBatch, words.size());
        std::int16_t sums[kLanes] = {};
        for (std::size_t i = first; i < last; ++i) {
            const std::int8_t* const weights = rows[words[i].hash & mask].weights;
            for (std::size_t lane = 0; lane < kLanes; ++lane) {
                sums[lane] = static_cast<std::int16_t>(sums[lane] + weights[lane]);
            }
        }
        for (std::size_t lane = 0; lane < kLanes; ++lane) sums_[lane] += sums[lane];
    }
    n_words_ += words.size();
    count_breaks(text, end);
}

// From where the last sentence ended: what lies between two sentences belongs to the second.
void DomainLayer::count_breaks(const unsigned char* text, std::size_t end) noexcept {
    const unsigned char* const last = text + end;
    const unsigned char* at = text + std::min(seen_, end);
    seen_ = std::max(seen_, end);
    while (at < last) {
        const auto* const line_end =
            static_cast<const unsigned char*>(std::memchr(at, '\n', static_cast<std::size_t>(last - at)));
        if (!line_end) break;
        const unsigned char* next = line_end + 1;
        while (next < last && is_blank(*next)) ++next;
        if (next < last && *next - unsigned{'A'} < 26u) {
            const unsigned char* before = line_end;
            while (before > text && is_blank(before[-1])) --before;
            n_breaks_ += before > text && goes_on(before[-1]);
        }
        at = next;
    }
}

DomainResult DomainLayer::finish() const noexcept {
    constexpr double kMost = 30.0;  // beyond it no probability changes that anyone could use
    DomainResult result{};
    const double n = static_cast<double>(n_words_) + model_->half_length_;
    unsigned tags = 0;
    for (std::size_t t = 0; t < kDomains; ++t) {
        result.sums[t] =
            static_cast<double>(sums_[t]) * model_->scale_[t] + static_cast<double>(n_breaks_) * model_->break_[t];
        const double z = std::clamp(model_->bias_[t] + result.sums[t] / n, -kMost, kMost);
        result.scores[t] = 1.0 / (1.0 + portable_exp(-z));
        tags |= static_cast<unsigned>(result.scores[t] >= model_->threshold_[t]) << t;
    }
    result.bits = with_cross_domain(static_cast<std::uint16_t>(tags));
    return result;
}

}  // namespace hsca
