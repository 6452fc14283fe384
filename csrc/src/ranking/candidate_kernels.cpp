#include "hsca/ranking/candidate_kernels.hpp"

namespace hsca {

#if defined(HSCA_X86_KERNELS)
#define HSCA_DECLARE(isa)                                                 \
    extern const CandidateKernels<float> candidate_kernels_##isa##_float; \
    extern const CandidateKernels<double> candidate_kernels_##isa##_double;
HSCA_DECLARE(avx2)
HSCA_DECLARE(avx512)
#endif
extern const CandidateKernels<float> candidate_kernels_baseline_float;
extern const CandidateKernels<double> candidate_kernels_baseline_double;

template <>
const CandidateKernels<float>& candidate_kernels(Isa isa) noexcept {
#if defined(HSCA_X86_KERNELS)
    if (isa == Isa::avx512) return candidate_kernels_avx512_float;
    if (isa == Isa::avx2) return candidate_kernels_avx2_float;
#endif
    static_cast<void>(isa);
    return candidate_kernels_baseline_float;
}

template <>
const CandidateKernels<double>& candidate_kernels(Isa isa) noexcept {
#if defined(HSCA_X86_KERNELS)
    if (isa == Isa::avx512) return candidate_kernels_avx512_double;
    if (isa == Isa::avx2) return candidate_kernels_avx2_double;
#endif
    static_cast<void>(isa);
    return candidate_kernels_baseline_double;
}

}  // namespace hsca
