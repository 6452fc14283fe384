#include "hsca/ranking/decay.hpp"

namespace hsca {

template <class T>
Outcome recency(const T* age, std::size_t n, T decay, const Workers& workers, T* out) {
    const auto kernel = candidate_kernels<T>(workers.isa).recency;
    return score_candidates(n, workers, out, [=](std::size_t begin, std::size_t count, T* to) {
        return kernel(age + begin, count, decay, to);
    });
}

template Outcome recency(const float*, std::size_t, float, const Workers&, float*);
template Outcome recency(const double*, std::size_t, double, const Workers&, double*);

}  // namespace hsca
