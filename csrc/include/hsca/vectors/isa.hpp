// isa.hpp -- which instructions the vector kernels may use. Every level gives the same bits; only the speed differs.
#pragma once

#include <cstdint>
#include <string_view>

namespace hsca {

// avx512 stands for AVX-512 F, BW, DQ, VL and VNNI together (Ice Lake, Zen 4 and later).
enum class Isa : std::uint8_t { baseline, avx2, avx512 };

// The best level of this machine that was compiled in.
Isa detected_isa() noexcept;
bool isa_supported(Isa isa) noexcept;
std::string_view isa_name(Isa isa) noexcept;

}  // namespace hsca
