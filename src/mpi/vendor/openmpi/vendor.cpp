// SPDX-License-Identifier: BSD-3-Clause
// The ABI of Open MPI 4 and 5, and of vendors' builds that have the same ABI.
#include "mpi/vendor/vendor.hpp"

#include <cstdlib>
#include <cstring>

namespace stretto::mpi::vendor {
namespace {
bool g_is_four = false;
const bool* g_reports_failures = nullptr;  // from Open MPI 5 on
}  // namespace

bool recognises(const char* library_version) {
  g_is_four = std::strstr(library_version, "Open MPI v4") != nullptr;
  // "Open MPI v4.1.4, package: ...". IBM's and Bull's builds say it, too, after their own name.
  return std::strstr(library_version, "Open MPI") != nullptr;
}

bool fill_constants(Constants& c) {
  g_reports_failures = static_cast<const bool*>(host_symbol("ompi_ftmpi_enabled"));
  c.comm_null = STRETTO_HANDLE(MPI_Comm, MPI_COMM_NULL, ompi_mpi_comm_null);
  c.comm_self = STRETTO_HANDLE(MPI_Comm, MPI_COMM_SELF, ompi_mpi_comm_self);
  c.comm_world = STRETTO_HANDLE(MPI_Comm, MPI_COMM_WORLD, ompi_mpi_comm_world);
  c.datatype_null = STRETTO_HANDLE(MPI_Datatype, MPI_DATATYPE_NULL, ompi_mpi_datatype_null);
  c.byte = STRETTO_HANDLE(MPI_Datatype, MPI_BYTE, ompi_mpi_byte);
  c.int_ = STRETTO_HANDLE(MPI_Datatype, MPI_INT, ompi_mpi_int);
  c.packed = STRETTO_HANDLE(MPI_Datatype, MPI_PACKED, ompi_mpi_packed);
  c.info_null = STRETTO_HANDLE(MPI_Info, MPI_INFO_NULL, ompi_mpi_info_null);
  c.errors_are_fatal = STRETTO_HANDLE(MPI_Errhandler, MPI_ERRORS_ARE_FATAL, ompi_mpi_errors_are_fatal);
  c.errors_return = STRETTO_HANDLE(MPI_Errhandler, MPI_ERRORS_RETURN, ompi_mpi_errors_return);
  c.op_null = STRETTO_HANDLE(MPI_Op, MPI_OP_NULL, ompi_mpi_op_null);
  c.band = STRETTO_HANDLE(MPI_Op, MPI_BAND, ompi_mpi_op_band);
  c.min = STRETTO_HANDLE(MPI_Op, MPI_MIN, ompi_mpi_op_min);
  c.request_null = STRETTO_HANDLE(MPI_Request, MPI_REQUEST_NULL, ompi_request_null);
  return c.comm_null && c.comm_self && c.comm_world && c.datatype_null && c.byte && c.int_ && c.packed && c.info_null &&
         c.errors_are_fatal && c.errors_return && c.op_null && c.min && c.band && c.request_null;
}

void ask_initialized_host(Constants&) {}

bool has_type(MPI_Datatype) { return true; }  // the handle of one that it lacks is null

bool meets_in_init() {
  const char* const asynchronous = std::getenv("OMPI_MCA_async_mpi_init");
  return asynchronous == nullptr || std::strchr("0fFnN", *asynchronous) != nullptr;  // 0, false, no, or empty
}

// Only the function of distributed graphs knows. It raises an error on grids and graphs, so the
// communicator returns errors meanwhile. Open MPI's handlers can be put back.
int topology_of(MPI_Comm comm, int said) {
  if (said != MPI_CART && said != MPI_GRAPH) return said;
  MPI_Errhandler before;
  if (host().Comm_get_errhandler(comm, &before) != MPI_SUCCESS) return said;
  host().Comm_set_errhandler(comm, host().constants.errors_return);
  int in = 0, out = 0, weighted = 0;
  const bool distributed = host().Dist_graph_neighbors_count(comm, &in, &out, &weighted) == MPI_SUCCESS;
  host().Comm_set_errhandler(comm, before);
  host().Errhandler_free(&before);
  return distributed ? MPI_DIST_GRAPH : said;
}

bool is_component(const char* name) {
  return std::strncmp(name, "mca_", 4) == 0 || std::strncmp(name, "libmca_", 7) == 0 ||
         std::strncmp(name, "libopen-pal", 11) == 0 || std::strncmp(name, "libopen-rte", 11) == 0;
}

bool reports_failures() { return g_reports_failures != nullptr && *g_reports_failures; }

bool requests_keep_handlers() { return true; }

// Of a receive from any source, of which one has died, only tests and waits tell.
bool looks_at_requests() { return !reports_failures(); }

bool is_complete(MPI_Request request) {
  int flag = 1;
  host().Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  return flag != 0;
}

bool testany_hides_errors() { return g_is_four; }
bool testsome_hides_errors() { return false; }

bool waits_clear_errors() { return false; }

// Its launcher tells ranks that they share processors, srun does not. Open MPI 4 does not show what
// it does, so its parameter has to do.
bool yields_when_idle() {
  const auto* yields = static_cast<const bool*>(host_symbol("opal_progress_yield_when_idle"));
  if (yields == nullptr) yields = static_cast<const bool*>(host_symbol("ompi_mpi_yield_when_idle"));
  return yields != nullptr && *yields;
}

bool nonblocking_gains() { return false; }

bool drive() { return false; }

unsigned poke_every() { return 1; }

}  // namespace stretto::mpi::vendor
