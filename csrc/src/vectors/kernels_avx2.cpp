// Compiled with the flags of its instruction set (CMakeLists.txt); empty on other machines.
#if defined(__AVX2__)
#include <immintrin.h>

#define HSCA_ISA isa_avx2
#define HSCA_WIDTH 32
#include "kernels.inl"
#endif
