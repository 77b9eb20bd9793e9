// SPDX-License-Identifier: BSD-3-Clause
// The MPICH ABI: MPICH from 3.1 on, Intel MPI, MVAPICH, ParaStation, Cray.
#include "mpi/vendor/vendor.hpp"

#include <dlfcn.h>

#include <cstring>

namespace stretto::mpi::vendor {
namespace {

bool g_is_intel = false;

// MPICH has it from 4.1 on. Its argument is an MPIX_Stream, and this one, MPIX_STREAM_NULL, stands
// for all of the host that the program has given to no stream.
using StreamProgress = int(int stream);
StreamProgress* g_stream_progress = nullptr;
constexpr int kStreamNull = 0x3c000000;

// MPICH 5 has it. It looks at any handle as if it were a request.
using RequestIsComplete = int(MPI_Request request);
RequestIsComplete* g_request_is_complete = nullptr;

}  // namespace

bool recognises(const char* library_version) {
  g_is_intel = std::strstr(library_version, "Intel(R) MPI") != nullptr;
  return g_is_intel || std::strstr(library_version, "MPICH") != nullptr ||
         std::strstr(library_version, "MVAPICH") != nullptr || std::strstr(library_version, "ParaStation") != nullptr;
}

bool fill_constants(Constants& c) {
  c = {MPI_COMM_NULL, MPI_COMM_SELF,        MPI_COMM_WORLD,    MPI_DATATYPE_NULL, MPI_BYTE, MPI_INT,  MPI_PACKED,
       MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN, MPI_OP_NULL,       MPI_MIN,  MPI_BAND, MPI_REQUEST_NULL};
  // Of the host itself: the first in the process is Stretto's.
  g_stream_progress = reinterpret_cast<StreamProgress*>(dlsym(g_host.library, "PMPIX_Stream_progress"));
  g_request_is_complete = reinterpret_cast<RequestIsComplete*>(dlsym(g_host.library, "PMPIX_Request_is_complete"));
  return true;
}

void ask_initialized_host(Constants&) {}

bool has_type(MPI_Datatype) { return true; }  // the handle of one that it lacks is null

bool meets_in_init() { return true; }

int topology_of(MPI_Comm, int said) { return said; }

bool is_component(const char* name) { return std::strncmp(name, "libmpl.", 7) == 0; }

bool reports_failures() { return false; }  // the job ends if a process fails

bool requests_keep_handlers() { return false; }  // MPICH 4 and Intel MPI do not, MPICH 5 does

bool looks_at_requests() { return g_request_is_complete != nullptr && g_stream_progress != nullptr; }

bool is_complete(MPI_Request request) { return !is_request(request) || g_request_is_complete(request) != 0; }

bool testany_hides_errors() { return false; }
bool testsome_hides_errors() { return g_is_intel || g_stream_progress != nullptr; }

bool waits_clear_errors() { return true; }

bool yields_when_idle() { return false; }

bool nonblocking_gains() { return !g_is_intel; }

bool drive() {
  if (g_stream_progress == nullptr) return false;
  g_stream_progress(kStreamNull);
  return true;
}

// A poke costs 17 to 50 ns in MPICH, and 0.6 to 1 us in Intel MPI.
unsigned poke_every() { return g_is_intel ? 32 : 1; }

}  // namespace stretto::mpi::vendor
