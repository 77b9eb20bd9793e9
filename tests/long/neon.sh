#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# Builds the reduction kernels for AArch64 and runs their checks under qemu's user emulation.
# Debian: apt-get install g++-aarch64-linux-gnu qemu-user
#   neon.sh [build directory]
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
build=${1:-$root/build/neon}
cxx=${CXX_AARCH64:-aarch64-linux-gnu-g++}
objdump=${OBJDUMP_AARCH64:-aarch64-linux-gnu-objdump}
for tool in "$cxx" "$objdump" qemu-aarch64 cmake; do
  command -v "$tool" >/dev/null || { echo "neon.sh: $tool is missing" >&2; exit 77; }
done
mkdir -p "$build"

common="-std=gnu++20 -Wall -Wextra -ffp-contract=off -I$root/src -I$root/tests/unit"
core="$common -fno-exceptions -fno-rtti -fvisibility=hidden"
# As in cmake/StrettoReduce.cmake.
kernels="$core -O3 -fno-tree-slp-vectorize -fno-trapping-math -falign-loops=32"

$cxx $kernels -c "$root/src/reduce/isa/baseline.cpp" -o "$build/baseline.o"
$cxx $core -O2 -c "$root/src/reduce/dispatch.cpp" -o "$build/dispatch.o"
$cxx $core -O2 -c "$root/src/reduce/types.cpp" -o "$build/types.o"
$cxx $common -O1 "$root/tests/long/reduce_main.cpp" "$build"/*.o -static -o "$build/reduce_check"
cmake -DNM="${objdump%objdump}nm" -DOBJDUMP="$objdump" -DISA=baseline -DOBJECT="$build/baseline.o" \
  -P "$root/tests/unit/reduce_objects.cmake"
# Vectorized at all? A sum of doubles must use a register of two.
"$objdump" -d "$build/baseline.o" | grep -q 'fadd.*\.2d' || { echo "neon.sh: kernels are not vectorized" >&2; exit 1; }
qemu-aarch64 "$build/reduce_check"
