// exact_cascade.hpp -- the k best rows of a tier by
//
//   score(i) = <row_i[:width], query> * inverse_i        (dot.hpp's order of summation, then one multiplication)
//
// provably the same rows as a scan that computes every score, ties by id. Codes of all rows are compared first; a row
// is dropped once its bound (codes.hpp) falls below the k-th best score found so far, else one more segment is
// compared; the rows that are left are scored.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "hsca/vectors/codes.hpp"
#include "hsca/vectors/top_k.hpp"

namespace hsca {

struct Tier {
    TierShape shape;
    Rows rows;  // full width; only the first shape.width coordinates count
    const float *inverse, *scale, *error, *lead_residual, *residual;
    const std::uint8_t *lead, *tail;
    const std::int64_t* ids;      // may be null: the row number
    const std::uint8_t* allowed;  // may be null: all; else 0 for rows that do not exist for this search
};

struct SearchWork {  // what a search did, for measurements
    std::uint64_t rows = 0, scored = 0, segments = 0;
};

// queries: regularised prefixes of the tier's width, none longer than 1. out_rows and out_scores hold k a query, padded
// with kNoRow and 0: in order, or only the best first if they are `candidates` for something that scores them again.
// False if stopped.
bool search_tier(const Tier& tier, const Rows& queries, std::size_t k, bool candidates, std::size_t threads, Isa isa,
                 Stop::Poll poll, std::span<std::uint32_t> out_rows, std::span<float> out_scores,
                 SearchWork* work = nullptr);

// The same, in order, by computing every score.
bool scan_tier(const Tier& tier, const Rows& queries, std::size_t k, std::size_t threads, Isa isa, Stop::Poll poll,
               std::span<std::uint32_t> out_rows, std::span<float> out_scores);

}  // namespace hsca
