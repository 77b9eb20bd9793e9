// SPDX-License-Identifier: BSD-3-Clause
// Reduction kernels: every predefined MPI op on every class of predefined datatype for which MPI
// allows it. They are compiled for several instruction sets. The first use chooses the best one for
// this CPU.
//
//   if (Kernel add = kernel(Op::sum, Type::f64)) add(inout, in, count);
//
// The caller keeps MPI's order: it passes the lower rank's operand as `in` and the other as
// `inout`. Buffers need no alignment. Results have the same bits on every instruction set, and
// wherever an element lies in the buffer. For this the kernels work element by element, are
// compiled without contraction into FMA, and never reassociate. Only one thing is left open: which
// NaN comes out where sum or prod met two of them, or where prod of complex met any.
//
// Where MPI leaves a choice, Stretto does what most MPIs do. Its results were compared with those
// of MPI_Reduce_local, with thousands of operands for every pair. The MPIs were Open MPI 4.1.4 and
// 5.0.11, MPICH 4.0.2 (Debian's) and 5.0.2, and Intel MPI 2021.18.
//
//   max, min         inout > in ? inout : in, and with < for min: on a tie (-0 and +0), and when
//                    either is a NaN, `in`. Open MPI prefers inout's NaN in the body of a vector
//                    that it has AVX for. Intel prefers what is not a NaN.
//   minloc, maxloc   on equal values inout's value and the lower index. A NaN on either side leaves
//                    inout as it is. Intel takes `in` if inout's value is a NaN.
//   land, lor, lxor  any operand that is not 0 is true; the result is 1 or 0. Open MPI combines the
//                    bits of a C bool, which differs only for values that a bool cannot have.
//   prod of complex  C's Annex G: an infinity survives although the plain formula gives NaN in both
//                    parts. All MPIs do the same.
//   integers         wrap around. Open MPI saturates long sums of 8 and 16 bits. MPICH 4.0.2
//                    compares unsigned integers as signed, which is a mistake.
//
// Gaps in an element (the padding of {double,int}, the last 6 bytes of an x87 long double) keep
// what they held. All MPIs do the same.
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::reduce {

enum class Op : std::uint8_t { sum, prod, max, min, land, lor, lxor, band, bor, bxor, minloc, maxloc, count_ };

// clang-format off
enum class Type : std::uint8_t {
  i8, i16, i32, i64, u8, u16, u32, u64,
  f32, f64, f80,                // f80: the C compiler's long double, whatever its format
  c32, c64, c80,                // complex of f32, f64, f80
  boolean8,                     // C bool, C++ bool
  logical4,                     // Fortran LOGICAL of 4 bytes
  byte8,                        // MPI_BYTE
  f32_i32, f64_i32, i64_i32, i32_i32, i16_i32, f80_i32,  // C structs {value, int}; i64_i32 is {long, int}
  f32_f32, f64_f64,             // Fortran's 2REAL and 2DOUBLE PRECISION; 2INTEGER is i32_i32
  count_
};
// clang-format on

// inout[i] = in[i] op inout[i], as MPI_Reduce_local does. The buffers do not overlap.
using Kernel = void (*)(void* inout, const void* in, std::size_t count);
// out[i] = in[i] op inout[i]. Each buffer is streamed once. `out` may be exactly `in` or `inout`;
// otherwise no buffers overlap.
using Kernel3 = void (*)(void* out, const void* in, const void* inout, std::size_t count);

// null where MPI does not define the pair. For logical ops MPI is narrower than these classes: it
// allows them on C integers but not on Fortran integers. The caller must know that. Any thread may
// call these; a call costs two loads.
[[nodiscard]] Kernel kernel(Op op, Type type);
[[nodiscard]] Kernel3 kernel3(Op op, Type type);

// The distance between elements. For the C structs it includes their padding.
[[nodiscard]] std::size_t type_bytes(Type type);

// The instruction set of the kernels in use: "avx512", "avx2", "sse2", "neon" or "generic".
[[nodiscard]] const char* isa_name();

// For tests and measurements: uses this instruction set from now on, or the best one for null.
// Returns false, and changes nothing, if this CPU or build lacks it. No other thread may use this
// interface meanwhile.
bool set_isa(const char* name);

inline constexpr std::size_t kOps = static_cast<std::size_t>(Op::count_);
inline constexpr std::size_t kTypes = static_cast<std::size_t>(Type::count_);

// What the translation unit of one instruction set fills in.
struct Table {
  Kernel two[kOps][kTypes];
  Kernel3 three[kOps][kTypes];
};

}  // namespace stretto::reduce
