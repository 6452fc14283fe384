// kernels.hpp -- the loops that are compiled once for each instruction set. Raw pointers and no standard library: a
// translation unit built for AVX-512 must not leave inline functions behind that the linker could hand to everybody.
//
// Float sums run in sixteen lanes, lane j taking elements j, j + 16, ...; the lanes are added pairwise (j + 8, j + 4, j
// + 2, j + 1). Without fused multiply-add that order fixes the bits, so every level returns the same.
#pragma once

#include <cstddef>
#include <cstdint>

namespace hsca {

// Rows of codes stand in groups of sixteen, four bytes of each row beside those of the next: a register holds four
// coordinates of sixteen rows, and sixteen sums finish without a horizontal addition.
inline constexpr std::size_t kGroupRows = 16;
inline constexpr std::size_t kSegment = 64;  // coordinates whose codes are kept together
inline constexpr std::size_t kGroupBytes = kGroupRows * kSegment;
inline constexpr int kCodeOffset = 128;          // codes are stored as code + 128
inline constexpr std::size_t kMaxWidth = 65536;  // 255 * 127 times as many fit an int32

struct BoundTerms {  // upper bound of a row: sum * scale[i] * step + error[i] * error_weight + residual[i] *
                     // residual_weight + rest
    float step, error_weight, residual_weight, rest;
};

struct VectorKernels {
    // out[i] = <query, rows + i * stride>
    void (*dot_rows)(const float* query, const float* rows, std::size_t stride, std::size_t n, std::size_t dims,
                     float* out);
    // out[q * out_stride + i] = <queries + q * query_stride, rows + i * stride>
    void (*dot_matrix)(const float* queries, std::size_t n_queries, std::size_t query_stride, const float* rows,
                       std::size_t n_rows, std::size_t stride, std::size_t dims, std::size_t out_stride, float* out);
    // out[i] = <query, rows + which[i] * stride>
    void (*dot_picked)(const float* query, const float* rows, std::size_t stride, const std::uint32_t* which,
                       std::size_t n, std::size_t dims, float* out);
    // sums[q * stride + row] = <query q, row> over `segments` segments of codes; queries are `segments` * 64 codes
    // each.
    void (*code_groups)(const std::int8_t* queries, std::size_t n_queries, const std::uint8_t* groups,
                        std::size_t n_groups, std::size_t segments, std::size_t stride, std::int32_t* sums);
    // sums[i] += <query, codes + which[i] * stride> over one segment
    void (*code_picked)(const std::int8_t* query, const std::uint8_t* codes, std::size_t stride,
                        const std::uint32_t* which, std::size_t n, std::int32_t* sums);
    // Writes the i < n whose bound reaches `least` to `found` (room for n + 16), returns how many. A null `residual` is
    // 0.
    std::size_t (*select_bounds)(const std::int32_t* sums, const float* scale, const float* error,
                                 const float* residual, std::size_t n, const BoundTerms& terms, float least,
                                 std::uint32_t* found);
    // inverse[t] = 1 / sqrt(|row[:dims[t]]|^2 + eps^2), squares summed in 32 float64 lanes, 0 for zeros; tiers[t] = row
    // * inverse[t]. Either output may be null. Returns the sum of squares of the widest prefix.
    double (*prefix_norm)(const float* row, const std::size_t* dims, std::size_t n_tiers, double eps_squared,
                          float* const* tiers, float* inverse);
    // max |x_j|
    float (*largest)(const float* x, std::size_t n);
    // Codes of the 64 values segment[j] * factor in units of `step`; their squares' sum and that of what the codes
    // leave.
    void (*quantise)(const float* segment, float factor, float step, std::int8_t* codes, float* energy, float* error);
};

namespace isa_baseline {
extern const VectorKernels kernels;
}
namespace isa_avx2 {
extern const VectorKernels kernels;
}
namespace isa_avx512 {
extern const VectorKernels kernels;
}

}  // namespace hsca
