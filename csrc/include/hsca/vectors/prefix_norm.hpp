// prefix_norm.hpp -- the regularised prefixes of a vector:
//
//   u_k = v[:k] / sqrt(|v[:k]|^2 + eps^2)
//
// for strictly increasing k, the squares summed once in float64 (32 lanes added pairwise), the results float32. |u_k| <
// 1 up to the rounding of its elements, and u_k goes smoothly to zero with v[:k].
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hsca/vectors/dot.hpp"

namespace hsca {

// tiers[t] is a rows.n x dims[t] matrix, filled row by row. is_finite tells whether every value of the widest prefixes
// was a number; if not, so are not the results. False if stopped.
bool prefix_tiers(const Rows& rows, std::span<const std::size_t> dims, double eps, std::size_t threads, Isa isa,
                  Stop::Poll poll, std::span<float* const> tiers, bool& is_finite);

// inverse[i] = 1 / sqrt(|row[:width]|^2 + eps^2), 0 for a prefix of zeros.
void prefix_inverse(const Rows& rows, std::size_t width, double eps, Isa isa, std::span<float> inverse);

// Whether products of rows with these inverse lengths could leave float32's range, or lose their digits in it.
bool are_extreme(std::span<const float> inverse) noexcept;

// A copy of the rows, each of length 1 or 0.
std::vector<float> unit_rows(const Rows& rows, Isa isa);

// finite[i] = 1 if every value of row i is a number, else 0.
void finite_rows(const Rows& rows, std::span<std::uint8_t> finite);

}  // namespace hsca
