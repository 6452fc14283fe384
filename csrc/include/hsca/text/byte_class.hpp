// byte_class.hpp -- 64 bytes of text as bit masks, one bit a byte; the only file that knows SIMD instructions.
// Every level gives the same masks: they are integers, so results cannot depend on the machine.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace hsca {

struct ByteMasks {
    std::uint64_t word;       // ASCII letters and digits
    std::uint64_t digit;      // ASCII digits
    std::uint64_t joiner;     // ' - _
    std::uint64_t separator;  // . and , : part of a number between two digits
    std::uint64_t event;      // . ! ? and line feed: where a sentence may end
    std::uint64_t high;       // bytes of multi-byte characters
};

// `baseline` is SSE2 on x86-64, NEON on AArch64 and the plain loop elsewhere; `scalar` is the plain loop, for tests.
enum class SimdLevel { scalar, baseline };

// Name of the instructions behind `baseline`: "sse2", "neon" or "scalar".
std::string_view simd_name() noexcept;

// Writes n_blocks masks for text[0, 64 * n_blocks).
using ClassifyBytes = void (*)(const unsigned char* text, std::size_t n_blocks, ByteMasks* masks);

ClassifyBytes classify_bytes(SimdLevel level) noexcept;

}  // namespace hsca
