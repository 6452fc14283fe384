#include "hsca/isa.hpp"

namespace hsca {

bool has_isa(Isa isa) noexcept {
    if (isa == Isa::baseline) return true;
#if defined(HSCA_X86_KERNELS)
    __builtin_cpu_init();
    if (isa == Isa::avx2) return __builtin_cpu_supports("avx2");
    return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
           __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl") &&
           __builtin_cpu_supports("avx512vnni");
#else
    return false;
#endif
}

Isa best_isa() noexcept {
    static const Isa best = has_isa(Isa::avx512) ? Isa::avx512 : has_isa(Isa::avx2) ? Isa::avx2 : Isa::baseline;
    return best;
}

std::string_view isa_name(Isa isa) noexcept {
    return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "baseline";
}

}  // namespace hsca
