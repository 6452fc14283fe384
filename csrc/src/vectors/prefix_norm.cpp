#include "hsca/vectors/prefix_norm.hpp"

#include <stdexcept>
#include <vector>

namespace hsca {

bool prefix_tiers(const Rows& rows, std::span<const std::size_t> dims, double eps, std::size_t threads, Isa isa,
                  Stop::Poll poll, std::span<float* const> tiers) {
    if (dims.size() != tiers.size()) throw std::invalid_argument("prefix_tiers: one matrix for each of dims");
    for (std::size_t t = 0; t < dims.size(); ++t) {
        if (dims[t] > rows.dims || (t > 0 && dims[t] <= dims[t - 1])) {
            throw std::invalid_argument("prefix_tiers: dims must increase and fit the vectors");
        }
    }
    const VectorKernels& kernels = vector_kernels(isa);
    Stop stop(poll);
    return parallel_for(rows.n, threads, 1024, stop, [&](std::size_t, std::size_t begin, std::size_t end) {
        std::vector<float*> at(tiers.size());
        for (std::size_t i = begin; i < end; ++i) {
            for (std::size_t t = 0; t < at.size(); ++t) at[t] = tiers[t] + i * dims[t];
            kernels.prefix_norm(rows.row(i), dims.data(), dims.size(), eps * eps, at.data(), nullptr);
        }
    });
}

void prefix_inverse(const Rows& rows, std::size_t width, double eps, Isa isa, std::span<float> inverse) {
    if (width > rows.dims || inverse.size() != rows.n) throw std::invalid_argument("prefix_inverse: sizes do not match");
    const VectorKernels& kernels = vector_kernels(isa);
    for (std::size_t i = 0; i < rows.n; ++i) {
        kernels.prefix_norm(rows.row(i), &width, 1, eps * eps, nullptr, &inverse[i]);
    }
}

}  // namespace hsca
