// SPDX-License-Identifier: BSD-3-Clause
// AVX-512 F, BW, VL and DQ.
#define STRETTO_ISA avx512
#include "reduce/kernels-inl.hpp"
