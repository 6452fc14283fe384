// dot.hpp -- inner products of float32 vectors with the same bits at every instruction set (kernels.hpp has the order
// of summation). Within (dims / 16 + 6) * 2^-24 * |a| |b| of the true value.
#pragma once

#include <cstddef>
#include <span>

#include "hsca/isa.hpp"
#include "hsca/parallel.hpp"
#include "hsca/vectors/kernels.hpp"

namespace hsca {

const VectorKernels& vector_kernels(Isa isa) noexcept;

// A matrix of float32 rows that somebody else owns.
struct Rows {
    const float* data;
    std::size_t n, dims, stride;
    const float* row(std::size_t i) const noexcept { return data + i * stride; }
};

// out[q * rows.n + i] = <queries[q], rows[i]>. False if stopped.
bool dot_products(const Rows& queries, const Rows& rows, std::size_t threads, Isa isa, Stop::Poll poll,
                  std::span<float> out);

}  // namespace hsca
