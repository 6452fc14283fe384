#if defined(HSCA_X86_KERNELS)
#define HSCA_ISA_TABLE(T) candidate_kernels_avx2_##T
#include "candidate_kernels.inl"
#endif
