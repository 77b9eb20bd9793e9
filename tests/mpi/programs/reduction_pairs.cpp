// SPDX-License-Identifier: BSD-3-Clause
// Every predefined operation on every predefined datatype, whether MPI defines the pair or not. It
// compares error classes and values of the linked functions (ours, under preload) with the host's
// own.
//
//   reduction_pairs [LENGTH ...]      lengths of vectors; 1 and 300 if none
#include <mpi.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "differential_calls.hpp"

namespace {

using differential::Functions;
using Bytes = std::vector<unsigned char>;

// What a type's elements are to this program, which makes values and compares results.
enum class As { integer, real, quad, pair };
struct Type {
  MPI_Datatype handle;
  const char* name;
  As as;
  std::size_t part;       // bytes of one number; 0: the whole element
  std::size_t second_at;  // of pairs
  bool ours;              // served wherever the host accepts it
};
struct Op {
  MPI_Op handle;
  const char* name;
};

#define I(name) {name, #name, As::integer, 0, 0, true},
#define R(name, part) {name, #name, As::real, part, 0, true},
#define P(name, value, second) {name, #name, As::pair, sizeof(value), second, true},
#define ELSE(name) {name, #name, As::integer, 0, 0, false},
const Type kTypes[] = {
    // clang-format off
  I(MPI_CHAR) I(MPI_WCHAR) I(MPI_SIGNED_CHAR) I(MPI_UNSIGNED_CHAR) I(MPI_SHORT) I(MPI_UNSIGNED_SHORT) I(MPI_INT) I(MPI_UNSIGNED)
  I(MPI_LONG) I(MPI_UNSIGNED_LONG) I(MPI_LONG_LONG_INT) I(MPI_UNSIGNED_LONG_LONG) I(MPI_INT8_T) I(MPI_INT16_T) I(MPI_INT32_T)
  I(MPI_INT64_T) I(MPI_UINT8_T) I(MPI_UINT16_T) I(MPI_UINT32_T) I(MPI_UINT64_T) I(MPI_AINT) I(MPI_COUNT) I(MPI_OFFSET)
  I(MPI_C_BOOL) I(MPI_CXX_BOOL) I(MPI_BYTE) I(MPI_PACKED) I(MPI_CHARACTER) I(MPI_INTEGER) I(MPI_INTEGER1) I(MPI_INTEGER2)
  I(MPI_INTEGER4) I(MPI_INTEGER8) I(MPI_LOGICAL)
  R(MPI_FLOAT, 4) R(MPI_DOUBLE, 8) R(MPI_LONG_DOUBLE, 16) R(MPI_C_FLOAT_COMPLEX, 4) R(MPI_C_DOUBLE_COMPLEX, 8)
  R(MPI_C_LONG_DOUBLE_COMPLEX, 16) R(MPI_CXX_FLOAT_COMPLEX, 4) R(MPI_CXX_DOUBLE_COMPLEX, 8) R(MPI_CXX_LONG_DOUBLE_COMPLEX, 16)
  R(MPI_REAL, 4) R(MPI_REAL4, 4) R(MPI_REAL8, 8) R(MPI_DOUBLE_PRECISION, 8) R(MPI_COMPLEX, 4) R(MPI_COMPLEX8, 4)
  R(MPI_COMPLEX16, 8) R(MPI_DOUBLE_COMPLEX, 8)
  {MPI_REAL16, "MPI_REAL16", As::quad, 16, 0, true}, {MPI_COMPLEX32, "MPI_COMPLEX32", As::quad, 16, 0, true},
  P(MPI_FLOAT_INT, float, 4) P(MPI_DOUBLE_INT, double, 8) P(MPI_LONG_INT, long, 8) P(MPI_2INT, int, 4) P(MPI_SHORT_INT, short, 4)
  P(MPI_LONG_DOUBLE_INT, long double, 16) P(MPI_2REAL, float, 4) P(MPI_2DOUBLE_PRECISION, double, 8) P(MPI_2INTEGER, int, 4)
// clang-format on
#if defined(MPI_LOGICAL1) && defined(OMPI_MAJOR_VERSION)
            I(MPI_LOGICAL1) I(MPI_LOGICAL2) I(MPI_LOGICAL4) I(MPI_LOGICAL8)
#elif defined(MPI_LOGICAL1)
            ELSE(MPI_LOGICAL1) ELSE(MPI_LOGICAL2) ELSE(MPI_LOGICAL4) ELSE(MPI_LOGICAL8)
#endif
#ifdef MPI_INTEGER16
                ELSE(MPI_INTEGER16)
#endif
#ifdef MPI_2COMPLEX
                    ELSE(MPI_2COMPLEX) ELSE(MPI_2DOUBLE_COMPLEX)
#endif
};
#define O(name) {name, #name},
const Op kOps[] = {O(MPI_SUM) O(MPI_PROD) O(MPI_MAX) O(MPI_MIN) O(MPI_LAND) O(MPI_LOR) O(MPI_LXOR) O(MPI_BAND)
                       O(MPI_BOR) O(MPI_BXOR) O(MPI_MINLOC) O(MPI_MAXLOC)};

enum Collective { kAllreduce, kReduce, kReduceScatter, kScan, kCollectives };
const char* const kNames[] = {"Allreduce", "Reduce", "Reduce_scatter", "Scan"};

int g_rank = 0, g_size = 0, g_accepted = 0, g_refused = 0;
const char* (*g_last_path)() = nullptr;

bool is_one_of(const Op& op, std::initializer_list<const char*> names) {
  for (const char* name : names) {
    if (std::strcmp(op.name, name) == 0) return true;
  }
  return false;
}

// ---- Values: no sum or product overflows, and every order of combining gives the same ----

template <class T>
void put(unsigned char* at, T value) {
  std::memcpy(at, &value, sizeof value);
}

void put_integer(unsigned char* at, std::size_t bytes, long value) {
  if (bytes == 1)
    put(at, static_cast<signed char>(value));
  else if (bytes == 2)
    put(at, static_cast<short>(value));
  else if (bytes == 4)
    put(at, static_cast<int>(value));
  else
    put(at, value);
  if (bytes == 16) put(at + 8, value < 0 ? -1L : 0L);
}

void put_real(unsigned char* at, std::size_t bytes, bool quad, int value) {
  if (bytes == 4) return put(at, static_cast<float>(value));
  if (bytes == 8) return put(at, static_cast<double>(value));
#if defined(__SIZEOF_FLOAT128__)
  if (quad) return put(at, static_cast<__float128>(value));
#endif
  const auto wide = static_cast<long double>(value);
  std::memcpy(at, &wide, bytes < 10 ? bytes : 10);
}

void make(const Type& type, const Op& op, std::size_t extent, int rank, int index, unsigned char* at) {
  const bool grows = is_one_of(op, {"MPI_SUM", "MPI_PROD"});
  const auto word = static_cast<std::uint32_t>((rank * 7919 + index) * 2654435761u >> 7);
  const int small = static_cast<int>(word % 3);
  const std::size_t part = type.part != 0 ? type.part : extent;
  if (std::strstr(type.name, "BOOL") != nullptr) return put_integer(at, part, small % 2);
  if (type.as == As::integer)
    return put_integer(at, part, grows ? small : static_cast<std::int16_t>(word) >> word % 4 * 4);
  if (type.as == As::pair) {
    const bool reals =
        std::strstr(type.name, "FLOAT") || std::strstr(type.name, "DOUBLE") || std::strstr(type.name, "REAL");
    reals ? put_real(at, part, false, small) : put_integer(at, part, small);
    const bool same = std::strstr(type.name, "MPI_2REAL") || std::strstr(type.name, "MPI_2DOUBLE");
    same ? put_real(at + type.second_at, part, false, rank) : put(at + type.second_at, rank);
    return;
  }
  for (std::size_t offset = 0; offset + part <= extent; offset += part) {
    put_real(at + offset, part, type.as == As::quad, grows ? small : static_cast<int>(word % 7) - 3);
  }
}

// Bytes that hold no data.
bool is_gap(const Type& type, std::size_t extent, std::size_t at) {
  const bool wide = std::strstr(type.name, "LONG_DOUBLE") != nullptr;
  const std::size_t number = wide ? 10 : type.part;
  if (type.as != As::pair) return wide && at % 16 >= 10;
  const bool same = std::strstr(type.name, "MPI_2") != nullptr;
  const std::size_t second = same ? extent - type.second_at : sizeof(int);
  return (at >= number && at < type.second_at) || at >= type.second_at + second;
}

// ---- One call ----

struct Result {
  int error_class = MPI_SUCCESS;
  Bytes out;
};

Result call(const Functions& f, Collective collective, const Type& type, const Op& op, const Bytes& in, int length) {
  Result result{MPI_SUCCESS, Bytes(in.size() + 64, 0x5a)};
  std::vector<int> counts(static_cast<std::size_t>(g_size), length / g_size);
  counts[0] += length % g_size;
  const void* const own = in.data();
  void* const out = result.out.data();
  int code = MPI_SUCCESS;
  switch (collective) {
    case kAllreduce: code = f.Allreduce(own, out, length, type.handle, op.handle, MPI_COMM_WORLD); break;
    case kReduce: code = f.Reduce(own, out, length, type.handle, op.handle, g_size - 1, MPI_COMM_WORLD); break;
    case kReduceScatter:
      code = f.Reduce_scatter(own, out, counts.data(), type.handle, op.handle, MPI_COMM_WORLD);
      break;
    default: code = f.Scan(own, out, length, type.handle, op.handle, MPI_COMM_WORLD); break;
  }
  if (code != MPI_SUCCESS) MPI_Error_class(code, &result.error_class);
  return result;
}

[[noreturn]] void fail(Collective collective, const Type& type, const Op& op, int length, const char* what, long ours,
                       long theirs) {
  std::fprintf(stderr, "reduction_pairs: FAILED rank %d of %d: %s of %d %s, %s: %s, ours %ld, the host's %ld\n", g_rank,
               g_size, kNames[collective], length, type.name, op.name, what, ours, theirs);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

bool is_logical(const Op& op) { return is_one_of(op, {"MPI_LAND", "MPI_LOR", "MPI_LXOR"}); }

// MPICH 4.0 accepts them, and computes nothing, or dies of an assertion.
bool kills_host(const Type& type, const Op& op) {
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000 && !defined(I_MPI_VERSION)
  return (type.as == As::real || type.as == As::quad) && is_logical(op);
#else
  return (void)type, (void)op, false;
#endif
}

// MPICH 4.0 compares unsigned integers as signed ones. Open MPI compares 64 bits of long vectors
// with or without a sign, but not as the type says. It takes numbers of 128 bits for the
// processor's of 80.
bool differs_in_host(const Type& type, const Op& op) {
#if defined(MPICH_NUMVERSION) && MPICH_NUMVERSION < 40100000
  const bool is_unsigned =
      std::strstr(type.name, "UNSIGNED") != nullptr || std::strstr(type.name, "MPI_UINT") != nullptr;
  return is_unsigned && is_one_of(op, {"MPI_MAX", "MPI_MIN"});
#elif defined(OMPI_MAJOR_VERSION)
  int bytes = 0;
  MPI_Type_size(type.handle, &bytes);
  return type.as == As::quad || (type.as == As::integer && bytes == 8 && is_one_of(op, {"MPI_MAX", "MPI_MIN"}));
#else
  return (void)type, (void)op, false;
#endif
}

void compare(const Functions* f, const Type& type, const Op& op, std::size_t extent, int length, bool expect_ours) {
  Bytes in(static_cast<std::size_t>(length) * extent);
  for (int i = 0; i < length; ++i) make(type, op, extent, g_rank, i, in.data() + static_cast<std::size_t>(i) * extent);
  for (int c = 0; c < kCollectives; ++c) {
    const auto collective = static_cast<Collective>(c);
    const Result theirs = call(f[1], collective, type, op, in, length);
    const Result ours = call(f[0], collective, type, op, in, length);
    const bool native = g_last_path != nullptr && std::strcmp(g_last_path(), "host") != 0;
    if (ours.error_class != theirs.error_class)
      fail(collective, type, op, length, "error class", ours.error_class, theirs.error_class);
    if (theirs.error_class != MPI_SUCCESS) {
      ++g_refused;
      continue;
    }
    ++g_accepted;
    const bool odd = is_logical(op) && type.as != As::integer;  // accepted by some, left to them
    if (expect_ours && type.ours && !odd && !native) fail(collective, type, op, length, "left to the host", 0, 0);
    if (differs_in_host(type, op)) continue;
    for (std::size_t i = 0; i < ours.out.size(); ++i) {
      if (ours.out[i] == theirs.out[i] || is_gap(type, extent, i % extent)) continue;
      fail(collective, type, op, length, ("byte " + std::to_string(i)).c_str(), ours.out[i], theirs.out[i]);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  g_last_path = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "stretto_last_path"));
  Functions functions[2] = {differential::linked_functions(), {}};
  if (!differential::host_functions(functions[1])) MPI_Abort(MPI_COMM_WORLD, 2);
  std::vector<int> lengths;
  for (int i = 1; i < argc; ++i) lengths.push_back(std::atoi(argv[i]));
  if (lengths.empty()) lengths = {1, 300};
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  MPI_Errhandler before, after;
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &before);
  for (const Type& type : kTypes) {
    MPI_Count size = 0, lower = 0, extent = 0;
    if (type.handle == MPI_DATATYPE_NULL || MPI_Type_size_x(type.handle, &size) != MPI_SUCCESS || size == 0) continue;
    MPI_Type_get_extent_x(type.handle, &lower, &extent);
    for (const Op& op : kOps) {
      for (const int length : lengths) {
        if (!kills_host(type, op))
          compare(functions, type, op, static_cast<std::size_t>(extent), length, g_last_path != nullptr);
      }
    }
  }
  MPI_Comm_get_errhandler(MPI_COMM_WORLD, &after);
  if (before != after) MPI_Abort(MPI_COMM_WORLD, 3);
  if (g_rank == 0) std::printf("%d calls accepted, %d refused, all as by the host\n", g_accepted, g_refused);
  MPI_Finalize();
  return 0;
}
