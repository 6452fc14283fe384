// floor.hpp -- the least work a word counter can do in a plain loop: lower-case ASCII, split at what is no letter or
// digit, FNV-1a hash of each word. The yardstick of the benchmarks, used by nothing else.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace hsca {

// Sum of the word hashes and of the number of words: a value that depends on every byte.
std::uint64_t split_and_hash(std::span<const std::string_view> texts) noexcept;

}  // namespace hsca
