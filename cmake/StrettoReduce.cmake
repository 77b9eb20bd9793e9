# SPDX-License-Identifier: BSD-3-Clause
# The reduction kernels: one source per instruction set in src/reduce/isa, compiled once and shared by both cores.
# STRETTO_ISAS names them, STRETTO_KERNEL_OBJECTS is what a core adds to its sources.
set(STRETTO_ISAS "")
set(STRETTO_KERNEL_OBJECTS "")

# Optimized in every build type: a kernel that is not vectorized is of no use, and -O3 keeps sanitized tests short. No
# contraction, so that every instruction set gives the same bits; no SLP vectorizer, because GCC 12's makes fmaddsub of
# a complex product whatever -ffp-contract says. Without trapping math comparisons may be vectorized. Loops aligned: a
# loop of seven instructions otherwise loses up to half its speed by where it happens to lie (measured on Skylake-SP).
function(stretto_kernels isa)
  add_library(stretto_kernels_${isa} OBJECT src/reduce/isa/${isa}.cpp)
  target_include_directories(stretto_kernels_${isa} PRIVATE src)
  target_compile_options(stretto_kernels_${isa} PRIVATE ${STRETTO_WARNINGS}
    -fno-exceptions -fno-rtti -fvisibility=hidden -fvisibility-inlines-hidden
    -O3 -ffp-contract=off -fno-tree-slp-vectorize -fno-trapping-math -falign-loops=32 ${ARGN})
  set(STRETTO_ISAS ${STRETTO_ISAS} ${isa} PARENT_SCOPE)
  set(STRETTO_KERNEL_OBJECTS ${STRETTO_KERNEL_OBJECTS} $<TARGET_OBJECTS:stretto_kernels_${isa}> PARENT_SCOPE)
endfunction()

stretto_kernels(baseline)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|AMD64)$")
  stretto_kernels(avx2 -mavx2)
  # 256-bit vectors: the gain of AVX-512 here is its instructions (64-bit multiply, min and max). 512-bit ones add
  # nothing beyond the L1 cache, and slow everything else the core does: a scalar loop between sums of doubles took
  # 24.0 us, after 256-bit ones 21.5 us, after SSE2 18.8 us (Skylake-SP).
  stretto_kernels(avx512 -mavx512f -mavx512bw -mavx512vl -mavx512dq -mprefer-vector-width=256)
endif()

# Not part of the product: GB/s of every kernel.
add_executable(stretto-kernels EXCLUDE_FROM_ALL bench/kernels.cpp src/reduce/dispatch.cpp src/reduce/types.cpp
  ${STRETTO_KERNEL_OBJECTS})
target_include_directories(stretto-kernels PRIVATE src)
