// SPDX-License-Identifier: BSD-3-Clause
// Sums and products whose every bit depends on the order of combining.
//
//   reproducible rank LENGTH ...    all reductions give the bits of one loop over the ranks, from
//                                   left to right
//   reproducible mpi LENGTH ...     they give the bits of the host's own functions; sums of
//                                   integers are ours all the same
#include <mpi.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "differential_calls.hpp"

namespace {

using differential::Functions;

int g_rank = 0, g_size = 0;
const char* (*g_last_path)() = nullptr;
MPI_Op g_user = MPI_OP_NULL;

std::uint64_t mixed(std::uint64_t x) {
  x = (x ^ x >> 30) * 0xbf58476d1ce4e5b9;
  x = (x ^ x >> 27) * 0x94d049bb133111eb;
  return x ^ x >> 31;
}
// Odd ranks take away what even ones bring, but for a rest.
double number(int rank, std::size_t at) {
  const double big = static_cast<double>(mixed(at * 64 + static_cast<std::size_t>(rank / 2)) >> 11) * 0x1p-40;
  const double rest = static_cast<double>(mixed(at * 64 + static_cast<std::size_t>(rank) + 99999) >> 11) * 0x1p-60;
  return rank % 2 == 0 ? big + rest : rest - big;
}
void make(float& v, int rank, std::size_t at) { v = static_cast<float>(number(rank, at)); }
void make(double& v, int rank, std::size_t at) { v = number(rank, at); }
void make(int& v, int rank, std::size_t at) { v = static_cast<int>(number(rank, at)); }
template <class T>
void make(std::complex<T>& v, int rank, std::size_t at) {
  v = {static_cast<T>(number(rank, 2 * at)), static_cast<T>(number(rank, 2 * at + 1))};
}
template <class T>
std::vector<T> contribution(int rank, std::size_t length) {
  std::vector<T> v(length);
  for (std::size_t i = 0; i < length; ++i) make(v[i], rank, i);
  return v;
}

[[noreturn]] void fail(const char* what, const char* kind, std::size_t length) {
  std::fprintf(stderr, "reproducible: FAILED rank %d of %d: %s of %zu %s\n", g_rank, g_size, what, length, kind);
  MPI_Abort(MPI_COMM_WORLD, 1);
  std::abort();
}

void user_sum(void* in, void* inout, int* length, MPI_Datatype*) {
  for (int i = 0; i < *length; ++i)
    static_cast<double*>(inout)[i] = static_cast<double*>(in)[i] + static_cast<double*>(inout)[i];
}

template <class T>
struct Case {
  const char* kind;
  MPI_Datatype type;
  MPI_Op op;
  std::size_t length;
  bool ours;  // whether we serve it

  struct Results {
    std::vector<T> all, reduced, part, prefix, before;
  };
  Results call(const Functions& f) const {
    const std::vector<T> own = contribution<T>(g_rank, length);
    Results r;
    r.all = r.reduced = r.part = r.prefix = r.before = std::vector<T>(length);
    const int n = static_cast<int>(length);
    std::vector<int> counts(static_cast<std::size_t>(g_size), n / g_size);
    counts.back() += n % g_size;
    const bool is_ours = &f == &g_functions[0];
    f.Allreduce(own.data(), r.all.data(), n, type, op, MPI_COMM_WORLD);
    if (is_ours) check_path("Allreduce");
    f.Reduce(own.data(), r.reduced.data(), n, type, op, g_size - 1, MPI_COMM_WORLD);
    if (is_ours) check_path("Reduce");
    f.Reduce_scatter(own.data(), r.part.data(), counts.data(), type, op, MPI_COMM_WORLD);
    if (is_ours) check_path("Reduce_scatter");
    f.Scan(own.data(), r.prefix.data(), n, type, op, MPI_COMM_WORLD);
    if (is_ours) check_path("Scan");
    f.Exscan(own.data(), r.before.data(), n, type, op, MPI_COMM_WORLD);
    return r;
  }
  void check_path(const char* what) const {
    if (g_last_path == nullptr) return;
    if ((std::strcmp(g_last_path(), "host") != 0) != ours)
      fail(ours ? "left to the host" : "not left to the host", what, length);
  }
  [[nodiscard]] Results from_left() const {
    Results r;
    r.all = r.reduced = r.prefix = r.before = contribution<T>(0, length);
    for (int rank = 1; rank < g_size; ++rank) {
      const std::vector<T> next = contribution<T>(rank, length);
      for (std::size_t i = 0; i < length; ++i) r.all[i] = op == MPI_PROD ? r.all[i] * next[i] : r.all[i] + next[i];
      if (rank == g_rank) r.prefix = r.all;
      if (rank == g_rank - 1) r.before = r.all;
    }
    if (g_rank == 0) r.before.assign(length, T{});
    if (g_rank == g_size - 1)
      r.reduced = r.all;
    else
      r.reduced.assign(length, T{});
    const std::size_t each = length / static_cast<std::size_t>(g_size), from = each * static_cast<std::size_t>(g_rank);
    const std::size_t count = g_rank == g_size - 1 ? length - from : each;
    r.part.assign(length, T{});
    std::copy_n(r.all.begin() + static_cast<std::ptrdiff_t>(from), count, r.part.begin());
    return r;
  }
  void compare(const Results& a, const Results& b) const {
    const auto same = [&](const char* what, const std::vector<T>& x, const std::vector<T>& y) {
      if (std::memcmp(x.data(), y.data(), length * sizeof(T)) != 0) fail(what, kind, length);
    };
    same("Allreduce", a.all, b.all);
    same("Reduce", a.reduced, b.reduced);
    same("Reduce_scatter", a.part, b.part);
    same("Scan", a.prefix, b.prefix);
    same("Exscan", a.before, b.before);
  }
  static Functions g_functions[2];
};
template <class T>
Functions Case<T>::g_functions[2] = {};

template <class T>
void run(const Functions* functions, bool in_order, const char* kind, MPI_Datatype type, MPI_Op op,
         std::size_t length) {
  Case<T>::g_functions[0] = functions[0];
  Case<T>::g_functions[1] = functions[1];
  const Case<T> c{kind, type, op, length, in_order || std::is_integral_v<T>};
  const auto ours = c.call(Case<T>::g_functions[0]);
  c.compare(ours, in_order ? c.from_left() : c.call(Case<T>::g_functions[1]));
}

}  // namespace

int main(int argc, char** argv) {
  const bool in_order = argc > 1 && std::strcmp(argv[1], "rank") == 0;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &g_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &g_size);
  MPI_Op_create(user_sum, 1, &g_user);
  g_last_path = reinterpret_cast<const char* (*)()>(dlsym(RTLD_DEFAULT, "stretto_last_path"));
  Functions functions[2] = {differential::linked_functions(), {}};
  if (!differential::host_functions(functions[1])) MPI_Abort(MPI_COMM_WORLD, 2);
  for (int i = 2; i < argc; ++i) {
    const auto length = static_cast<std::size_t>(std::atol(argv[i]));
    run<int>(functions, in_order, "int, sum", MPI_INT, MPI_SUM, length);
    run<float>(functions, in_order, "float, sum", MPI_FLOAT, MPI_SUM, length);
    run<double>(functions, in_order, "double, sum", MPI_DOUBLE, MPI_SUM, length);
    run<double>(functions, in_order, "double, product", MPI_DOUBLE, MPI_PROD, length);
    run<std::complex<double>>(functions, in_order, "complex, sum", MPI_C_DOUBLE_COMPLEX, MPI_SUM, length);
    run<double>(functions, in_order, "double, a user's sum", MPI_DOUBLE, g_user, length);
  }
  MPI_Op_free(&g_user);
  if (g_rank == 0) std::printf("all sums as expected\n");
  MPI_Finalize();
  return 0;
}
