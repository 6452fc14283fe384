// floor.hpp -- the yardsticks of the benchmarks, used by nothing else: the least work a word counter can do in a plain
// loop (lower-case ASCII, split at what is no letter or digit, FNV-1a hash of each word), and the least a score over
// candidates can do (read its columns, write one).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace hsca {

// Sum of the word hashes and of the number of words: a value that depends on every byte.
std::uint64_t split_and_hash(std::span<const std::string_view> texts) noexcept;

// out[i] depends on every column at i; `third` and `scope` may be null.
void stream_columns(const float* first, const float* second, const float* third, const std::uint8_t* scope,
                    std::size_t n, float* out) noexcept;

}  // namespace hsca
