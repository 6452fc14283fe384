// token_masks.hpp -- 64 bytes of text as bit masks for tokens between white space, one bit a byte.
// Beside byte_class.cpp the only code that knows SIMD instructions. Both versions give the same masks: they are
// integers, so results cannot depend on the machine.
#pragma once

#include <cstdint>

namespace hsca {

struct TokenMasks {
    std::uint64_t space;  // ASCII white space as Unicode has it: 9 to 13 and 28 to 32
    std::uint64_t core;   // neither white space nor ASCII punctuation
    std::uint64_t high;   // bytes of multi-byte characters
};

// Of window[0, 64).
TokenMasks token_masks(const unsigned char* window) noexcept;

// The plain loop, for tests and for machines without SSE2 or NEON.
TokenMasks token_masks_scalar(const unsigned char* window) noexcept;

}  // namespace hsca
