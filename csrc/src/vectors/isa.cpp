#include "hsca/vectors/isa.hpp"

#include "hsca/vectors/dot.hpp"

#if defined(__x86_64__)
#define HSCA_X86 1
#endif

namespace hsca {

bool isa_supported(Isa isa) noexcept {
    switch (isa) {
#if defined(HSCA_X86)
        case Isa::avx512:
            return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                   __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
                   __builtin_cpu_supports("avx512vnni");
        case Isa::avx2:
            return __builtin_cpu_supports("avx2");
#endif
        case Isa::baseline:
            return true;
        default:
            return false;
    }
}

Isa detected_isa() noexcept {
    static const Isa best = isa_supported(Isa::avx512) ? Isa::avx512
                            : isa_supported(Isa::avx2) ? Isa::avx2
                                                       : Isa::baseline;
    return best;
}

std::string_view isa_name(Isa isa) noexcept {
    return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "baseline";
}

const VectorKernels& vector_kernels(Isa isa) noexcept {
    switch (isa) {
#if defined(HSCA_X86)
        case Isa::avx512:
            return isa_avx512::kernels;
        case Isa::avx2:
            return isa_avx2::kernels;
#endif
        default:
            return isa_baseline::kernels;
    }
}

}  // namespace hsca
