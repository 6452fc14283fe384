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
    // A block of rows, about 16 KB, stays in the cache while the queries pass over it.
    const std::size_t block = 4 * std::clamp<std::size_t>(1024 / std::max<std::size_t>(rows.dims, 1), 1, 16);
    // Of rows with themselves half the products tell all: <a, b> has the bits of <b, a>.
    const bool is_square = queries.data == rows.data && queries.n == rows.n && queries.stride == rows.stride;
    const VectorKernels& kernels = vector_kernels(isa);
    const std::size_t n_blocks = (rows.n + block - 1) / block;
    Stop stop(poll);
    return parallel_for(n_blocks, threads, 1, stop, [&](std::size_t, std::size_t begin, std::size_t end) {
        for (std::size_t b = begin; b < end; ++b) {
            const std::size_t first = b * block, count = std::min(block, rows.n - first);
            const std::size_t q = is_square ? first : 0;
            kernels.dot_matrix(queries.row(q), queries.n - q, queries.stride, rows.row(first), count, rows.stride,
                               rows.dims, rows.n, out.data() + q * rows.n + first);
            for (std::size_t i = first; is_square && i < first + count; ++i) {
                for (std::size_t j = first + count; j < rows.n; ++j) out[i * rows.n + j] = out[j * rows.n + i];
            }
        }
    });
}

}  // namespace hsca
