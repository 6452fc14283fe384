#include "hsca/vectors/dot.hpp"

#include <stdexcept>

namespace hsca {

const VectorKernels& vector_kernels(Isa isa) noexcept {
    switch (isa) {
#if defined(HSCA_X86_KERNELS)
        case Isa::avx512:
            return isa_avx512::kernels;
        case Isa::avx2:
            return isa_avx2::kernels;
#endif
        default:
            return isa_baseline::kernels;
    }
}

bool dot_products(const Rows& queries, const Rows& rows, std::size_t threads, Isa isa, Stop::Poll poll,
                  std::span<float> out) {
    if (queries.dims != rows.dims || out.size() != queries.n * rows.n) {
        throw std::invalid_argument("dot_products: sizes do not match");
    }
    // A block of rows stays in the cache while the queries pass over it.
    constexpr std::size_t kBlock = 64;
    const VectorKernels& kernels = vector_kernels(isa);
    const std::size_t n_blocks = (rows.n + kBlock - 1) / kBlock;
    Stop stop(poll);
    return parallel_for(n_blocks, threads, 1, stop, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t b = begin; b < end; ++b) {
            const std::size_t first = b * kBlock, count = std::min(kBlock, rows.n - first);
            for (std::size_t q = 0; q < queries.n; ++q) {
                kernels.dot_rows(queries.row(q), rows.row(first), rows.stride, count, rows.dims,
                                 out.data() + q * rows.n + first);
            }
        }
    });
}

}  // namespace hsca
