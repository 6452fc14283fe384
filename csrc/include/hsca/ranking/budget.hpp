// budget.hpp -- which ranked rows fit a budget (section 3).
//
//   prefix     the longest prefix of the ranking whose summed cost is at most the budget; the first overflow stops
//   first_fit  every row in rank order that still fits
//
// Costs are finite and not negative. Integers are summed exactly, up to 2^63 - 1 whatever the budget; floats in rank
// order with the lost bits carried along.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hsca {

enum class FitPolicy { prefix, first_fit };

// Cost is int32, int64 or double. Nothing comes back when a cost (or score) is out of its domain.
// The rows are ranked already: row 0 is the best.
template <class Cost>
std::optional<std::vector<std::int64_t>> fit_budget(const Cost* costs, std::size_t n, double budget, FitPolicy policy);

// Ranks the rows by (score descending, row ascending) first, but sorts no more of them than the budget asks for: a
// sample of the scores says where to cut. Throws std::invalid_argument for 2^32 rows or more.
template <class T, class Cost>
std::optional<std::vector<std::int64_t>> fit_budget_scored(const T* scores, const Cost* costs, std::size_t n,
                                                           double budget, FitPolicy policy);

}  // namespace hsca
