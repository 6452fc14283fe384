#define HSCA_ISA_TABLE(T) candidate_kernels_baseline_##T
#include "candidate_kernels.inl"
