// SPDX-License-Identifier: BSD-3-Clause
// The MPICH ABI: MPICH from 3.1 on, Intel MPI, MVAPICH, ParaStation, Cray. Handles are ints, constants are numbers.
#include <cstring>

#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi::vendor {
namespace {
bool g_is_intel = false;
}

const char* const kAbi = "mpich";
const char* const kFamily = "MPICH or Intel MPI";
const char* const kSrunOption = "--mpi=pmi2";
const char* const kHandleSymbol = nullptr;

bool recognises(const char* library_version) {
  g_is_intel = std::strstr(library_version, "Intel(R) MPI") != nullptr;
  return g_is_intel || std::strstr(library_version, "MPICH") != nullptr ||
         std::strstr(library_version, "MVAPICH") != nullptr || std::strstr(library_version, "ParaStation") != nullptr;
}

bool fill_constants(Constants& c) {
  c = {MPI_COMM_NULL, MPI_COMM_SELF,        MPI_COMM_WORLD,    MPI_DATATYPE_NULL, MPI_BYTE, MPI_INT,
       MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN, MPI_MIN,           MPI_BAND, MPI_REQUEST_NULL};
  return true;
}

bool meets_in_init() { return true; }

bool is_component(const char* name) { return std::strncmp(name, "libmpl.", 7) == 0; }

// MPICH: 20 to 34 ns. Intel: 0.6 to 1 us, so rarely.
bool reports_failures() { return false; }  // the job ends

unsigned poke_every() { return g_is_intel ? 32 : 1; }

}  // namespace stretto::mpi::vendor
