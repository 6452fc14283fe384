// word_table.hpp -- a fixed set of words with exactly one place for each: a look-up costs one comparison and no branch,
// which matters because "is this word listed?" is a coin toss that a branch predictor loses.
// Hash and displace: the words of a bucket share the first displacement that puts all of them into free slots.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hsca/text/words.hpp"

namespace hsca {

class WordTable {
  public:
    struct Entry {
        WordKey key;
        std::uint64_t value;
    };

    // Throws std::invalid_argument when a word is given twice.
    explicit WordTable(std::span<const Entry> entries);

    // The value of a word, 0 for a word that is not in the table; `hash` is its hash_key.
    std::uint64_t find(const WordKey& key, std::uint64_t hash) const noexcept {
        const Slot& slot = slots_[slot_of(hash, displacements_[bucket_of(hash)])];
        const std::uint64_t is_same =
            static_cast<std::uint64_t>(slot.key.low == key.low) & static_cast<std::uint64_t>(slot.key.high == key.high);
        return slot.value & (0u - is_same);
    }

    std::uint64_t operator[](const WordKey& key) const noexcept { return find(key, hash_key(key)); }

  private:
    struct alignas(32) Slot {  // never across two cache lines
        WordKey key;           // {0, 0}, which no word is, for a free slot
        std::uint64_t value;
    };

    std::size_t bucket_of(std::uint64_t hash) const noexcept { return hash >> 40 & (displacements_.size() - 1); }
    std::size_t slot_of(std::uint64_t hash, std::uint32_t displacement) const noexcept {
        return (hash + displacement * (hash >> 12 | 1)) & (slots_.size() - 1);
    }
    bool place_all(std::span<const Entry> entries, std::size_t n_slots);
    bool place_bucket(std::span<const Entry> entries, std::span<const std::size_t> members, std::size_t bucket);

    std::vector<std::uint16_t> displacements_;
    std::vector<Slot> slots_;
};

}  // namespace hsca
