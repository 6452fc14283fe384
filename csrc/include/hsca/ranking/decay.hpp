// decay.hpp -- R = e^(-lambda age), the recency of a candidate; age in seconds, lambda per second (section 2).
// In (0, 1]: a date in the future is age 0, and lambda age counts at most 64 in float, 600 in double.
#pragma once

#include <cstddef>

#include "hsca/ranking/candidate_blocks.hpp"

namespace hsca {

// T is float or double; n elements each, and `out` must not overlap `age`.
template <class T>
Outcome recency(const T* age, std::size_t n, T decay, const Workers& workers, T* out);

}  // namespace hsca
