#include "hsca/text/word_table.hpp"

#include <algorithm>
#include <bit>
#include <stdexcept>

namespace hsca {

namespace {
constexpr WordKey kFree{0, 0};
}

WordTable::WordTable(std::span<const Entry> entries) {
    std::vector<WordKey> keys;
    for (const Entry& entry : entries) keys.push_back(entry.key);
    const auto less = [](const WordKey& a, const WordKey& b) {
        return a.low != b.low ? a.low < b.low : a.high < b.high;
    };
    std::sort(keys.begin(), keys.end(), less);
    if (std::adjacent_find(keys.begin(), keys.end()) != keys.end())
        throw std::invalid_argument("a word is given twice");
    // At most five eighths full: places are found at the first few displacements. Words made to share a hash would
    // never find any; they are refused.
    const std::size_t smallest = std::bit_ceil(std::max<std::size_t>(16, entries.size() * 8 / 5));
    for (std::size_t n_slots = smallest; n_slots <= smallest * 16; n_slots *= 2) {
        if (place_all(entries, n_slots)) return;
    }
    throw std::invalid_argument("these words cannot be told apart by their hashes");
}

bool WordTable::place_all(std::span<const Entry> entries, std::size_t n_slots) {
    displacements_.assign(n_slots / 4, 0);
    slots_.assign(n_slots, {kFree, 0});
    std::vector<std::vector<std::size_t>> members(displacements_.size());
    for (std::size_t i = 0; i < entries.size(); ++i) members[bucket_of(hash_key(entries[i].key))].push_back(i);
    std::vector<std::size_t> order(members.size());
    for (std::size_t bucket = 0; bucket < order.size(); ++bucket) order[bucket] = bucket;
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return members[a].size() > members[b].size(); });
    return std::all_of(order.begin(), order.end(),
                       [&](std::size_t bucket) { return place_bucket(entries, members[bucket], bucket); });
}

bool WordTable::place_bucket(std::span<const Entry> entries, std::span<const std::size_t> members, std::size_t bucket) {
    for (std::uint32_t displacement = 0; displacement <= 0xFFFF; ++displacement) {
        const auto slot_at = [&](std::size_t member) {
            return slot_of(hash_key(entries[members[member]].key), displacement);
        };
        std::size_t placed = 0;
        for (; placed < members.size() && slots_[slot_at(placed)].key == kFree; ++placed)
            slots_[slot_at(placed)] = {entries[members[placed]].key, entries[members[placed]].value};
        if (placed == members.size()) {
            displacements_[bucket] = static_cast<std::uint16_t>(displacement);
            return true;
        }
        while (placed > 0) slots_[slot_at(--placed)] = {kFree, 0};
    }
    return false;
}

}  // namespace hsca
