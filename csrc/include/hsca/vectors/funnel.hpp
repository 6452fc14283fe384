// funnel.hpp -- one step of a funnel: candidate rows scored at a greater width, the best of them kept.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hsca/vectors/dot.hpp"
#include "hsca/vectors/top_k.hpp"

namespace hsca {

// Scores are those of exact_cascade.hpp at width queries.dims. candidates holds queries.n lists of equal length, padded
// with kNoRow; the outputs hold `keep` a query, padded with kNoRow and 0: in order, or only the best first if they are
// candidates for a further step. ids may be null. False if stopped.
bool narrow(const Rows& rows, const float* inverse, const std::int64_t* ids, const Rows& queries,
            std::span<const std::uint32_t> candidates, std::size_t keep, bool candidates_only, std::size_t threads,
            Isa isa, Stop::Poll poll, std::span<std::uint32_t> out_rows, std::span<float> out_scores);

}  // namespace hsca
