// perfect_table.hpp -- a fixed set of words with exactly one place for each: a look-up costs one comparison and no
// branch, which matters because "is this a function word?" is a coin toss that a branch predictor loses.
// Hash and displace: the words of a bucket share the first displacement that puts all of them into free slots.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "hsca/text/words.hpp"

namespace hsca {

template <std::size_t Slots>
class PerfectWordTable {
    static_assert((Slots & (Slots - 1)) == 0);
    static constexpr std::size_t kBuckets = Slots / 4;
    static constexpr std::size_t kLargestBucket = 16;  // a fuller one would not compile

  public:
    template <std::size_t N>
    constexpr explicit PerfectWordTable(const std::array<WordKey, N>& words) {
        static_assert(N * 8 <= Slots * 7, "too full to place every word");
        std::array<std::array<std::uint64_t, kLargestBucket>, kBuckets> members{};
        std::array<std::size_t, kBuckets> sizes{};
        for (std::size_t i = 0; i < N; ++i) {
            const std::size_t bucket = bucket_of(hash_of(both_halves(words[i])));
            members[bucket][sizes[bucket]++] = i;
        }
        for (std::size_t size = kLargestBucket; size > 0; --size) {
            for (std::size_t bucket = 0; bucket < kBuckets; ++bucket) {
                if (sizes[bucket] == size) place(words, {members[bucket].data(), size}, bucket);
            }
        }
    }

    // The value of a word, 0 for a word that is not in the table.
    constexpr std::uint32_t operator[](const WordKey& key) const noexcept {
        const std::uint64_t both = both_halves(key);
        const std::size_t slot = slot_of(hash_of(both), displacement_[bucket_of(hash_of(both))]);
        std::uint32_t is_same = both_[slot] == both;
        // A word of at most eight bytes shares `both` with no other: two ASCII bytes leave one without the case bit,
        // two lead bytes leave one of ASCII's controls, and no folded word holds either (test_function_words.cpp tries
        // all).
        if (key.high && is_same) [[unlikely]]
            is_same = high_[slot] == key.high;
        return values_[slot] & (0u - is_same);
    }

    constexpr void set(const WordKey& key, std::uint16_t value) noexcept {
        const std::uint64_t hash = hash_of(both_halves(key));
        values_[slot_of(hash, displacement_[bucket_of(hash)])] = value;
    }

  private:
    static constexpr std::uint64_t both_halves(const WordKey& key) noexcept {
        return key.low ^ (key.high << 48 | key.high >> 16);
    }
    static constexpr std::uint64_t hash_of(std::uint64_t both) noexcept {
        const std::uint64_t x =
            (both ^ both >> 29) * 0x9E3779B97F4A7C15ull;  // the last bytes must reach the low bits, too
        return x ^ x >> 32;
    }
    static constexpr std::size_t bucket_of(std::uint64_t hash) noexcept { return (hash >> 40) % kBuckets; }
    static constexpr std::size_t slot_of(std::uint64_t hash, std::uint32_t displacement) noexcept {
        return (hash + displacement * (hash >> 12 | 1)) % Slots;
    }

    template <std::size_t N>
    constexpr void place(const std::array<WordKey, N>& words, std::span<const std::uint64_t> members,
                         std::size_t bucket) {
        const auto slot_at = [&](std::size_t member, std::uint32_t displacement) {
            return slot_of(hash_of(both_halves(words[members[member]])), displacement);
        };
        for (std::uint32_t displacement = 0;; ++displacement) {
            std::size_t placed = 0;
            for (; placed < members.size(); ++placed) {
                const std::size_t slot = slot_at(placed, displacement);
                if (both_[slot]) break;
                both_[slot] = both_halves(words[members[placed]]);
                high_[slot] = words[members[placed]].high;
            }
            if (placed == members.size()) {
                displacement_[bucket] = static_cast<std::uint16_t>(displacement);
                return;
            }
            while (placed > 0) both_[slot_at(--placed, displacement)] = 0;
        }
    }

    std::array<std::uint16_t, kBuckets> displacement_{};
    std::array<std::uint64_t, Slots>
        both_{};  // the halves of the key in one word: eight bytes a slot are read, not sixteen
    std::array<std::uint16_t, Slots> values_{};
    std::array<std::uint64_t, Slots> high_{};
};

}  // namespace hsca
