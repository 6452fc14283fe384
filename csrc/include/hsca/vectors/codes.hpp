// codes.hpp -- a tier of an index: the regularised prefixes u of its rows as bytes, with what is needed to bound an
// inner product from above without reading the row.
//
//   u = scale * code + e,  |code| <= 127,  error = |e|,  residual_m = |u[64 m:]|
//
// For a query v = step * c + f with the first m segments compared and g = |f[:64 m]|, Cauchy-Schwarz gives
//
//   <u, v>  <=  scale * step * <code, c>[:64 m] + error * (|v| + g) + g + residual_m * |v[64 m:]|
//
// since |scale * code| <= |u| + error and |u| <= 1. `rounding_slack` covers the float arithmetic of both sides. Errors
// and residuals are rounded up.
//
// Codes come in segments of 64 coordinates. The first `lead` segments of sixteen rows stand together (kernels.hpp) and
// are compared for every row; the others are rows of their own, for those that are left.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "hsca/vectors/dot.hpp"

namespace hsca {

struct TierShape {
    std::size_t width, lead, segments;
    std::size_t tail_bytes() const noexcept { return (segments - lead) * kSegment; }
};

// Segments that hold `width` coordinates.
constexpr std::size_t segment_count(std::size_t width) noexcept { return (width + kSegment - 1) / kSegment; }

// The least number of leading segments that hold `share` of the rows' energy on average.
std::size_t leading_segments(const Rows& rows, std::size_t width, double share);

// The columns of a tier; pointers to row 0 of arrays with room for whole groups of rows.
struct TierColumns {
    float* inverse;        // 1 / |row[:width]|, regularised
    float* scale;          //
    float* error;          //
    float* lead_residual;  // after the leading segments
    float*
        residual;  // row i, after each further segment but the last (which leaves nothing): segments - lead - 1 of them
    std::uint8_t* lead;  // groups of sixteen rows, lead * 1024 bytes each
    std::uint8_t* tail;  // tail_bytes() for each row
};

// Rows [begin, end) of the tier from the full-width rows. False if stopped.
bool encode_tier(const Rows& rows, std::size_t begin, std::size_t end, const TierShape& shape, double eps, Isa isa,
                 Stop& stop, const TierColumns& out);

// A row's leading codes, as a query has them.
void leading_codes(const TierShape& shape, const std::uint8_t* lead, std::size_t row, std::int8_t* codes);

// A query on the tier's terms.
struct CodedQuery {
    std::vector<std::int8_t> codes;  // all segments
    float step = 0.0f;
    double error = 0.0;
    std::vector<double> rest;  // |v[64 m:]| for m = 0 .. segments
    void encode(const float* query, const TierShape& shape, const VectorKernels& kernels);
    BoundTerms terms(std::size_t compared, std::size_t width) const noexcept;
};

// The bound of one row, in the order of VectorKernels::select_bounds.
inline float row_bound(std::int32_t sum, float scale, float error, float residual, const BoundTerms& terms) noexcept {
    return ((static_cast<float>(sum) * (scale * terms.step) + error * terms.error_weight) +
            residual * terms.residual_weight) +
           terms.rest;
}

// What float32 arithmetic may add to a score or take from a bound, both of vectors no longer than 1.
constexpr double rounding_slack(std::size_t width) noexcept {
    return (static_cast<double>(width) / 8.0 + 48.0) * 0x1p-24;
}

}  // namespace hsca
