// SPDX-License-Identifier: BSD-3-Clause
// How far apart two results of one reduction of floating-point numbers may be, if
// only the order differs.
//
//   sum       There are P numbers of at most `scale`. Each of the P - 1 roundings of either order
//             is off by at most epsilon / 2 * P * scale. So the results differ by at most
//             P * P * epsilon * scale.
//   product   The relative error of each order is at most P * epsilon. For a complex number it is
//             4 times as much, relative to the modulus.
//   others    The numbers are equal. The MPI may choose the sign of a zero and what becomes of a
//             NaN. Numbers with a place (MPI_MINLOC, MPI_MAXLOC) are not compared, because a NaN
//             takes its place along.
//
// Numbers that are not finite, or that may have become infinite on the way, are not compared.
#include <cfloat>
#include <cmath>
#include <cstdlib>
#include <cstring>

#include "mpi/data/check.hpp"

namespace stretto::mpi {
namespace {

using reduce::Op;
using reduce::Type;

bool is_complex(Type type) { return type >= Type::c32 && type <= Type::c80; }
bool is_number_with_place(Type type) {
  return type == Type::f32_i32 || type == Type::f64_i32 || type == Type::f80_i32 || type == Type::f32_f32 ||
         type == Type::f64_f64;
}
bool is_number(Type type) { return type >= Type::f32 && type <= Type::c80; }

// One real number, or half a complex one.
std::size_t part_bytes(Type type) { return reduce::type_bytes(type) / (is_complex(type) ? 2 : 1); }

long double part(Type type, const void* base, std::uint64_t index) {
  const char* const at = static_cast<const char*>(base) + index * part_bytes(type);
  float f = 0;
  double d = 0;
  long double l = 0;
  switch (type) {
    case Type::f32:
    case Type::c32: std::memcpy(&f, at, sizeof f); return f;
    case Type::f64:
    case Type::c64: std::memcpy(&d, at, sizeof d); return d;
    default: std::memcpy(&l, at, sizeof l); return l;
  }
}

struct Precision {
  long double epsilon, least, most;
};
Precision precision(Type type) {
  switch (type) {
    case Type::f32:
    case Type::c32: return {FLT_EPSILON, FLT_MIN, FLT_MAX};
    case Type::f64:
    case Type::c64: return {DBL_EPSILON, DBL_MIN, DBL_MAX};
    default: return {LDBL_EPSILON, LDBL_MIN, LDBL_MAX};
  }
}

// The largest modulus of this rank's numbers. It is infinite if one of them is not finite.
double largest(Type type, const void* own, std::uint64_t parts) {
  long double most = 0;
  for (std::uint64_t i = 0; i < parts; ++i) {
    const long double value = fabsl(part(type, own, i));
    if (!(value <= LDBL_MAX)) return HUGE_VAL;
    if (value > most) most = value;
  }
  return static_cast<double>(most) * (1 + DBL_EPSILON);
}

double agreed_largest(const State& state, double mine) {
  const Inside inside;
  auto* const all = static_cast<double*>(std::malloc(static_cast<std::size_t>(state.size) * sizeof(double)));
  if (all == nullptr) std::abort();  // a few bytes a rank, and the other ranks wait for this rank's word
  const MPI_Datatype byte = host().constants.byte;
  double most = HUGE_VAL;
  if (host().Allgather(&mine, sizeof mine, byte, all, sizeof mine, byte, state.handle) == MPI_SUCCESS) {
    most = 0;
    for (int r = 0; r < state.size; ++r) most = all[r] > most ? all[r] : most;
  }
  std::free(all);
  return most;
}

long double distance(Type type, const void* a, const void* b, std::uint64_t index) {
  if (!is_complex(type)) return fabsl(part(type, a, index) - part(type, b, index));
  return hypotl(part(type, a, 2 * index) - part(type, b, 2 * index),
                part(type, a, 2 * index + 1) - part(type, b, 2 * index + 1));
}
long double modulus(Type type, const void* a, std::uint64_t index) {
  if (!is_complex(type)) return fabsl(part(type, a, index));
  return hypotl(part(type, a, 2 * index), part(type, a, 2 * index + 1));
}

}  // namespace

void check_reduction(Call& call, const Combining& combining, const void* own, std::uint64_t count) {
  if (call.state->check != 3) [[likely]]
    return;
  const Type type = combining.type;
  const bool numbers = combining.by == Combining::By::kernel && is_number(type);
  const bool known = numbers && own != nullptr;
  // All ranks take part, whatever they know, because this is a collective.
  const double scale = agreed_largest(*call.state, known ? largest(type, own, count * (is_complex(type) ? 2 : 1)) : 0);
  Snapshot* const snapshot = call.snapshot;
  if (snapshot == nullptr) return;
  const bool by_function = combining.by == Combining::By::user || combining.by == Combining::By::function;
  if (by_function || is_number_with_place(type)) snapshot->compare = Snapshot::Compare::nothing;
  if (!numbers) return;
  const double ranks = call.state->size;
  const Precision p = precision(type);
  snapshot->compare = Snapshot::Compare::numbers;
  snapshot->numbers = type;
  if (!combining.rounds) return;
  snapshot->product = combining.op == Op::prod;
  snapshot->tolerance = static_cast<double>(p.epsilon) * ranks * (snapshot->product ? 8 : ranks * scale);
  if (!snapshot->product && !(ranks * scale < static_cast<double>(p.most)))
    snapshot->compare = Snapshot::Compare::nothing;
}

std::size_t number_bytes(const Snapshot& snapshot) { return reduce::type_bytes(snapshot.numbers); }
std::uint64_t numbers_in(const Snapshot& snapshot) { return snapshot.bytes / number_bytes(snapshot); }

bool numbers_differ(const Snapshot& snapshot, std::uint64_t index) {
  const Type type = snapshot.numbers;
  const Precision p = precision(type);
  const long double ours = modulus(type, snapshot.ours, index);
  const long double theirs = modulus(type, snapshot.before, index);
  if (!(ours <= LDBL_MAX) || !(theirs <= LDBL_MAX)) return false;
  const long double apart = distance(type, snapshot.ours, snapshot.before, index);
  if (!snapshot.product) return apart > static_cast<long double>(snapshot.tolerance);
  // Near the least numbers intermediate results may have been lost.
  if (ours < p.least / p.epsilon || theirs < p.least / p.epsilon) return false;
  return apart > static_cast<long double>(snapshot.tolerance) * ours;
}

}  // namespace stretto::mpi
