#include "hsca/ranking/near_copies.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstdlib>
#include <limits>
#include <stdexcept>
#include <vector>

#include "hsca/text/unicode.hpp"

namespace hsca {
namespace {

constexpr std::size_t kBuckets = 256;
constexpr std::size_t kExact = 3;  // so many code points of 21 bits fit into a number

constexpr std::uint64_t kNone = ~std::uint64_t{0};  // no n-gram: theirs have 63 bits

struct GramSet {
    std::vector<std::uint64_t> grams;  // each once
    std::array<std::uint8_t, kBuckets> counts{};
    bool counted = true;  // no bucket is full
    bool sorted = false;
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
        const CodePoint c = decode_utf8(at, end);
        points.push_back(static_cast<std::uint32_t>(c.value));
        at += c.length;
    }
    if (points.size() < n) points.resize(n, 0);
}

// `slots` is a hash table that is kept from one text to the next for its memory.
GramSet gram_set(const std::vector<std::uint32_t>& points, std::size_t n, std::vector<std::uint64_t>& slots) {
    GramSet set;
    const std::size_t total = points.size() - n + 1;
    set.grams.reserve(total);
    slots.assign(std::bit_ceil(2 * total), kNone);
    const std::size_t last_slot = slots.size() - 1;
    const auto add = [&](std::uint64_t gram) {
        const std::uint64_t hash = mixed(gram);
        std::size_t slot = static_cast<std::size_t>(hash >> 20) & last_slot;
        while (slots[slot] != kNone && slots[slot] != gram) slot = (slot + 1) & last_slot;
        if (slots[slot] == gram) return;
        slots[slot] = gram;
        set.grams.push_back(gram);
        std::uint8_t& count = set.counts[hash >> 56];
        if (count == std::numeric_limits<std::uint8_t>::max()) {
            set.counted = false;
        } else {
            ++count;
        }
    };
    if (n <= kExact) {
        const std::uint64_t mask = (std::uint64_t{1} << (21 * n)) - 1;
        std::uint64_t gram = 0;
        for (std::size_t i = 0; i < points.size(); ++i) {
            gram = (gram << 21 | points[i]) & mask;
            if (i + 1 >= n) add(gram);
        }
    } else {
        for (std::size_t i = 0; i + n <= points.size(); ++i) {
            std::uint64_t gram = n;
            for (std::size_t j = i; j < i + n; ++j) gram = mixed(gram ^ points[j]);
            add(gram >> 1);
        }
    }
    return set;
}

// At most so many n-grams are in both: sum min(a, b) = (sum a + sum b - sum |a - b|) / 2.
std::size_t most_shared(const GramSet& a, const GramSet& b) noexcept {
    if (!a.counted || !b.counted) return std::min(a.grams.size(), b.grams.size());
    int apart = 0;
    for (std::size_t i = 0; i < kBuckets; ++i) apart += std::abs(int{a.counts[i]} - int{b.counts[i]});
    return (a.grams.size() + b.grams.size() - static_cast<std::size_t>(apart)) / 2;
}

void sort(GramSet& set) {
    if (!set.sorted) std::sort(set.grams.begin(), set.grams.end());
    set.sorted = true;
}

std::size_t shared(GramSet& a, GramSet& b) {
    sort(a);
    sort(b);
    std::size_t common = 0, j = 0;
    for (const std::uint64_t gram : a.grams) {
        while (j < b.grams.size() && b.grams[j] < gram) ++j;
        if (j == b.grams.size()) break;
        common += b.grams[j] == gram;
    }
    return common;
}

double jaccard(std::size_t common, const GramSet& a, const GramSet& b) noexcept {
    return static_cast<double>(common) / static_cast<double>(a.grams.size() + b.grams.size() - common);
}

}  // namespace

void near_copies(std::span<const std::string_view> texts, std::size_t n, double threshold,
                 std::span<std::int64_t> first, std::span<double> similarity) {
    if (first.size() != texts.size() || similarity.size() != texts.size() || n == 0) {
        throw std::invalid_argument("near_copies: sizes differ");
    }
    std::vector<GramSet> staying;
    std::vector<std::int64_t> rows;
    std::vector<std::uint32_t> points;
    std::vector<std::uint64_t> slots;
    for (std::size_t row = 0; row < texts.size(); ++row) {
        code_points(texts[row], n, points);
        GramSet set = gram_set(points, n, slots);
        first[row] = -1;
        similarity[row] = 0.0;
        for (std::size_t i = 0; i < staying.size(); ++i) {
            // More in common makes more alike, so the bounds may stand for the number itself.
            if (jaccard(std::min(set.grams.size(), staying[i].grams.size()), set, staying[i]) < threshold) continue;
            if (jaccard(most_shared(set, staying[i]), set, staying[i]) < threshold) continue;
            const double found = jaccard(shared(set, staying[i]), set, staying[i]);
            if (found >= threshold) {
                first[row] = rows[i];
                similarity[row] = found;
                break;
            }
        }
        if (first[row] < 0) {
            staying.push_back(std::move(set));
            rows.push_back(static_cast<std::int64_t>(row));
        }
    }
}

}  // namespace hsca
