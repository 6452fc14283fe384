// dedup.hpp -- connected components of the rows under cos(i, j) >= threshold, exact.
//
// Every pair is bounded by its codes (codes.hpp); only pairs whose bound reaches the threshold, and that are not in one
// component yet, are computed. cos is dot.hpp's product times the two inverse norms, and counts from threshold - 1e-6
// on, so that float32 rounding does not part equal rows. A row of zeros is alone.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hsca/vectors/dot.hpp"

namespace hsca {

inline constexpr double kCosineNoise = 1e-6;

// component[i] is the lowest row of i's component. False if stopped.
bool connected_components(const Rows& rows, double threshold, std::size_t threads, Isa isa, Stop::Poll poll,
                          std::span<std::uint32_t> component);

}  // namespace hsca
