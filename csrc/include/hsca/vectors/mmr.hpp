// mmr.hpp -- maximal marginal relevance with group balance. Each pick maximises
//
//   lambda * relevance_i - (1 - lambda) * max_{j picked} cos(i, j) - group_weight * (picked in i's group) / (picked)
//
// both of the last terms 0 while nothing is picked; ties go to the lowest row. cos is dot.hpp's product times the two
// inverse norms, in float64; a row of zeros has cosine 0.
//
// The first two terms only fall once there is a pick, so a candidate's old value bounds its new one: a heap for each
// group holds old values, and only candidates at the top are brought up to date.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hsca/vectors/dot.hpp"

namespace hsca {

struct MmrConfig {
    double lambda = 0.7, group_weight = 0.0;
};

// groups: empty, or one number below n_groups for each row. Writes min(picks.size(), rows.n) row numbers. False if
// stopped.
bool mmr(const Rows& rows, std::span<const double> relevance, std::span<const std::uint32_t> groups,
         std::size_t n_groups, const MmrConfig& config, Isa isa, Stop::Poll poll, std::span<std::int64_t> picks);

}  // namespace hsca
