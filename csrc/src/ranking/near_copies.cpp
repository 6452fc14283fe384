#include "hsca/ranking/near_copies.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <stdexcept>
#include <vector>

#include "hsca/text/unicode.hpp"

namespace hsca {
namespace {

constexpr std::size_t kBuckets = 256, kCoarseBuckets = 64;
constexpr std::size_t kExact = 3;                                    // so many code points of 21 bits fit into a number
constexpr std::size_t kFewestSlots = 1 << 13, kMostSlots = 1 << 20;  // of the hash values that one text holds

// A text, with as little as tells it from most others; its n-grams themselves only once it is compared with one.
struct Profile {
    std::string_view text;
    std::size_t least = 0, most = 0;                    // n-grams are at least and at most so many
    std::array<std::uint8_t, kBuckets> counts{};        // of hash values, 255 for more
    std::array<std::uint8_t, kCoarseBuckets> coarse{};  // the same in fewer buckets
    std::vector<std::uint64_t> grams{};                 // each once, in order
};

std::uint64_t mixed(std::uint64_t x) noexcept {
    x *= 0x9E3779B97F4A7C15u;
    return x ^ (x >> 29);
}

void code_points(std::string_view text, std::size_t n, std::vector<std::uint32_t>& points) {
    points.clear();
    const auto* at = reinterpret_cast<const unsigned char*>(text.data());
    const auto* end = at + text.size();
    while (at < end) {
        if (*at < 0x80) {
            points.push_back(*at++);
            continue;
        }
        const CodePoint c = decode_utf8(at, end);
        points.push_back(static_cast<std::uint32_t>(c.value));
        at += c.length;
    }
    if (points.size() < n) points.resize(n, 0);
}

template <class Add>
void each_gram(const std::vector<std::uint32_t>& points, std::size_t n, Add&& add) {
    if (n <= kExact) {
        const std::uint64_t mask = (std::uint64_t{1} << (21 * n)) - 1;
        std::uint64_t gram = 0;
        for (std::size_t i = 0; i + 1 < n; ++i) gram = gram << 21 | points[i];
        for (std::size_t i = n - 1; i < points.size(); ++i) {
            gram = (gram << 21 | points[i]) & mask;
            add(gram);
        }
    } else {
        for (std::size_t i = 0; i + n <= points.size(); ++i) {
            std::uint64_t gram = n;
            for (std::size_t j = i; j < i + n; ++j) gram = mixed(gram ^ points[j]);
            add(gram >> 1);
        }
    }
}

class Comparison {
  public:
    Comparison(std::span<const std::string_view> texts, std::size_t n) : n_(n) {
        std::size_t longest = 0;
        for (const std::string_view text : texts) longest = std::max(longest, text.size());
        slots_.resize(std::clamp(std::bit_ceil(16 * std::min(longest, kMostSlots)), kFewestSlots, kMostSlots) / 64);
    }

    // A bucket counts the hash values that end with its number, each once.
    Profile profile(std::string_view text) {
        Profile made{text};
        code_points(text, n_, points_);
        made.most = points_.size() - n_ + 1;
        std::fill(slots_.begin(), slots_.end(), 0);
        std::array<std::uint32_t, kBuckets> counts{};
        const std::size_t last_slot = 64 * slots_.size() - 1;
        each_gram(points_, n_, [&](std::uint64_t gram) {
            const std::size_t slot = static_cast<std::size_t>(mixed(gram) >> 32) & last_slot;
            std::uint64_t& word = slots_[slot / 64];
            const std::uint64_t before = word;
            word |= std::uint64_t{1} << slot % 64;
            counts[slot % kBuckets] += word != before;
        });
        std::array<std::uint32_t, kCoarseBuckets> coarse{};
        for (std::size_t i = 0; i < kBuckets; ++i) {
            coarse[i % kCoarseBuckets] += counts[i];
            made.counts[i] = static_cast<std::uint8_t>(std::min(counts[i], 255u));
        }
        for (std::size_t i = 0; i < kCoarseBuckets; ++i) {
            made.least += coarse[i];
            made.coarse[i] = static_cast<std::uint8_t>(std::min(coarse[i], 255u));
        }
        return made;
    }

    double similarity(Profile& a, Profile& b) {
        find_grams(a);
        find_grams(b);
        std::size_t common = 0, j = 0;
        for (const std::uint64_t gram : a.grams) {
            while (j < b.grams.size() && b.grams[j] < gram) ++j;
            if (j == b.grams.size()) break;
            common += b.grams[j] == gram;
        }
        return static_cast<double>(common) / static_cast<double>(a.grams.size() + b.grams.size() - common);
    }

  private:
    void find_grams(Profile& of) {
        if (!of.grams.empty()) return;
        code_points(of.text, n_, points_);
        of.grams.reserve(of.most);
        each_gram(points_, n_, [&](std::uint64_t gram) { of.grams.push_back(gram); });
        std::sort(of.grams.begin(), of.grams.end());
        of.grams.erase(std::unique(of.grams.begin(), of.grams.end()), of.grams.end());
    }

    std::size_t n_;
    std::vector<std::uint32_t> points_;
    std::vector<std::uint64_t> slots_;  // a bit each, kept from one text to the next for its memory
};

template <std::size_t kN>
std::size_t apart(const std::array<std::uint8_t, kN>& a, const std::array<std::uint8_t, kN>& b) noexcept {
    int sum = 0;
    for (std::size_t i = 0; i < kN; ++i) sum += std::abs(int{a[i]} - int{b[i]});
    return static_cast<std::size_t>(sum);
}

// No similarity is greater. A hash value that one text alone has is an n-gram that it alone has, and counts that differ
// by d are at least d such values; so is any n-gram of a long text for which a short one has no room. Of a + b n-grams
// or fewer d are in one text, at most (a + b - d) / 2 in both.
double highest_similarity(const Profile& a, const Profile& b, std::size_t apart) noexcept {
    if (a.least > b.most) apart = std::max(apart, a.least - b.most);
    if (b.least > a.most) apart = std::max(apart, b.least - a.most);
    const auto alone = static_cast<double>(static_cast<std::int64_t>(apart));
    const double both = (static_cast<double>(static_cast<std::int64_t>(a.most + b.most)) - alone) / 2;
    return both / (both + alone);
}

}  // namespace

void near_copies(std::span<const std::string_view> texts, std::size_t n, double threshold,
                 std::span<std::int64_t> first, std::span<double> similarity) {
    if (first.size() != texts.size() || similarity.size() != texts.size() || n == 0) {
        throw std::invalid_argument("near_copies: sizes differ");
    }
    std::vector<Profile> staying;
    std::vector<std::int64_t> rows;
    Comparison comparison(texts, n);
    for (std::size_t row = 0; row < texts.size(); ++row) {
        Profile profile = comparison.profile(texts[row]);
        first[row] = -1;
        similarity[row] = 0.0;
        for (std::size_t i = 0; i < staying.size(); ++i) {
            if (highest_similarity(profile, staying[i], apart(profile.coarse, staying[i].coarse)) < threshold) continue;
            if (highest_similarity(profile, staying[i], apart(profile.counts, staying[i].counts)) < threshold) continue;
            const double found = comparison.similarity(profile, staying[i]);
            if (found >= threshold) {
                first[row] = rows[i];
                similarity[row] = found;
                break;
            }
        }
        if (first[row] < 0) {
            staying.push_back(std::move(profile));
            rows.push_back(static_cast<std::int64_t>(row));
        }
    }
}

}  // namespace hsca
