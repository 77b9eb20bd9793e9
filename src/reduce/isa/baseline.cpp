// SPDX-License-Identifier: BSD-3-Clause
// What every CPU of the architecture has: SSE2 on x86-64, NEON on AArch64.
#define STRETTO_ISA baseline
#include "reduce/kernels-inl.hpp"
