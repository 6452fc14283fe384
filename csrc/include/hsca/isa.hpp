// isa.hpp -- which instructions this machine has, for the few kernels that are built more than once.
// Every level gives the same bits; a level is only ever a matter of time.
#pragma once

#include <string_view>

namespace hsca {

// `baseline` is what the compiler takes for granted: SSE2 on x86-64, NEON on AArch64. `avx512` stands for AVX-512 F,
// BW, DQ, VL and VNNI together (Ice Lake, Zen 4 and later).
enum class Isa { baseline, avx2, avx512 };

// The machine has the instructions and the build holds a kernel for them.
bool has_isa(Isa isa) noexcept;
Isa best_isa() noexcept;
std::string_view isa_name(Isa isa) noexcept;

}  // namespace hsca
