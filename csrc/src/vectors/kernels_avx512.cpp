// Compiled with the flags of its instruction set (CMakeLists.txt); empty on other machines.
#if defined(__AVX512VNNI__)
#include <immintrin.h>

#define HSCA_ISA isa_avx512
#define HSCA_WIDTH 64
#include "kernels.inl"
#endif
