// SPDX-License-Identifier: BSD-3-Clause
// AVX2 without FMA: results must not depend on the instruction set.
#define STRETTO_ISA avx2
#include "reduce/kernels-inl.hpp"
