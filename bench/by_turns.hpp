// SPDX-License-Identifier: BSD-3-Clause
// For programs that call Stretto and the MPI by turns, in one run.
#pragma once
#include <dlfcn.h>
#include <link.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

namespace bench {

// The MPI's own library, whatever is preloaded in front of it.
inline void* host_library() {
  const char* name = nullptr;
  dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const char* base = std::strrchr(info->dlpi_name, '/');
        base = base != nullptr ? base + 1 : info->dlpi_name;
        if (std::strncmp(base, "libmpi.so", 9) != 0 && std::strncmp(base, "libmpich.so", 11) != 0) return 0;
        *static_cast<const char**>(found) = info->dlpi_name;
        return 1;
      },
      &name);
  void* const handle = name != nullptr ? dlopen(name, RTLD_LAZY | RTLD_NOLOAD) : nullptr;
  if (handle == nullptr) std::abort();
  return handle;
}

// `prefix` and `name` make the symbol.
template <class Function>
void find_function(Function& function, void* handle, const char* prefix, const char* name) {
  char symbol[64];
  std::snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
  function = reinterpret_cast<Function>(dlsym(handle, symbol));
  if (function == nullptr) std::abort();
}

inline double median(std::vector<double> values) {
  std::nth_element(values.begin(), values.begin() + static_cast<long>(values.size() / 2), values.end());
  return values[values.size() / 2];
}

// The slowest rank's time of one of `calls` calls, in seconds. `call` gets their numbers.
template <class Call>
double time_of(int calls, Call&& call) {
  PMPI_Barrier(MPI_COMM_WORLD);
  const double began = MPI_Wtime();
  for (int i = 0; i < calls; ++i) call(i);
  double mine = (MPI_Wtime() - began) / calls, slowest = 0;
  PMPI_Allreduce(&mine, &slowest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
  return slowest;
}

// How many calls take some 20 ms by the faster of the two. time(0, calls) is the time of one of
// Stretto's, time(1, calls) of one of the MPI's.
template <class Time>
int calls_of_a_round(int most, Time&& time) {
  const double ours = time(0, 4), mpis = time(1, 4);
  return static_cast<int>(std::clamp(0.02 / std::min(ours, mpis), 4.0, static_cast<double>(most)));
}

// The medians of both over rounds in which they take turns.
template <class Time>
std::array<double, 2> medians(int rounds, int calls, Time&& time) {
  std::array<std::vector<double>, 2> times;
  for (int round = 0; round < rounds; ++round) {
    for (int which = 0; which < 2; ++which) times[which].push_back(time(which, calls));
  }
  return {median(times[0]), median(times[1])};
}

// Prints a row. `about` and `more` are members of its JSON, before and behind the times.
inline void print_result(const std::string& about, const std::array<double, 2>& seconds, const std::string& more = "") {
  std::printf("{\"event\": \"row\", %s, \"us\": %.3f, \"mpi_us\": %.3f, \"ratio\": %.3f%s%s}\n", about.c_str(),
              seconds[0] * 1e6, seconds[1] * 1e6, seconds[0] / seconds[1], more.empty() ? "" : ", ", more.c_str());
  std::fflush(stdout);
}

}  // namespace bench
