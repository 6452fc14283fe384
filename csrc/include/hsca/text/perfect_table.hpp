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
            const std::size_t bucket = bucket_of(hash_of(words[i]));
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
        const std::uint64_t hash = hash_of(key);
        const std::size_t slot = slot_of(hash, displacement_[bucket_of(hash)]);
        const WordKey& found = keys_[slot];
        const auto is_same = static_cast<std::uint32_t>(found.low == key.low) & static_cast<std::uint32_t>(found.high == key.high);
        return values_[slot] & (0u - is_same);
    }

    constexpr void set(const WordKey& key, std::uint16_t value) noexcept {
        const std::uint64_t hash = hash_of(key);
        values_[slot_of(hash, displacement_[bucket_of(hash)])] = value;
    }

  private:
    static constexpr std::uint64_t hash_of(const WordKey& key) noexcept {
        const std::uint64_t x = key.low * 0x9E3779B97F4A7C15ull + key.high * 0xC2B2AE3D27D4EB4Full;
        return x ^ x >> 32;
    }
    static constexpr std::size_t bucket_of(std::uint64_t hash) noexcept { return hash % kBuckets; }
    static constexpr std::size_t slot_of(std::uint64_t hash, std::uint32_t displacement) noexcept {
        return static_cast<std::size_t>((hash >> 10) * (2u * displacement + 1u) >> 12) % Slots;
    }

    template <std::size_t N>
    constexpr void place(const std::array<WordKey, N>& words, std::span<const std::uint64_t> members, std::size_t bucket) {
        for (std::uint32_t displacement = 0;; ++displacement) {
            std::size_t placed = 0;
            for (; placed < members.size(); ++placed) {
                WordKey& slot = keys_[slot_of(hash_of(words[members[placed]]), displacement)];
                if (slot.low) break;
                slot = words[members[placed]];
            }
            if (placed == members.size()) {
                displacement_[bucket] = static_cast<std::uint16_t>(displacement);
                return;
            }
            while (placed > 0) keys_[slot_of(hash_of(words[members[--placed]]), displacement)] = WordKey{0, 0};
        }
    }

    std::array<std::uint16_t, kBuckets> displacement_{};
    std::array<WordKey, Slots> keys_{};
    std::array<std::uint16_t, Slots> values_{};
};

}  // namespace hsca
