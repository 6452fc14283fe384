#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#define HSCA_ISA isa_baseline
#define HSCA_WIDTH 16
#include "kernels.inl"
