// SPDX-License-Identifier: BSD-3-Clause
// The standard ABI of MPI 5, as MPICH 5, Intel MPI and Open MPI 6 have it in libmpi_abi.
#include "mpi/vendor/vendor.hpp"

#include <cstdlib>
#include <cstring>

namespace stretto::mpi::vendor {
namespace {

bool g_is_intel = false;
bool g_is_mpich = false;
bool g_is_open_mpi = false;

// An attribute of MPI_COMM_WORLD is the greatest error code, at least MPI_ERR_LASTCODE. A draft of
// the standard had other keys, and exchanged two error handlers. Intel MPI 2021.18 has that draft.
constexpr int kLastUsedCode = 506, kLastUsedCodeOfDraft = 507;
constexpr std::uintptr_t kErrorsReturnOfDraft = 0x142;

bool is_last_code(int key) {
  int* value = nullptr;
  int found = 0;
  return g_host.Comm_get_attr(MPI_COMM_WORLD, key, &value, &found) == MPI_SUCCESS && found && value != nullptr &&
         *value >= MPI_ERR_LASTCODE;
}

// ---- Fortran's types ----

// Types that a host may lack, and the keys by which it says that it has them.
// clang-format off
#define STRETTO_OPTIONAL(X) \
  X(MPI_LOGICAL, "mpi_logical_size")           X(MPI_INTEGER, "mpi_integer_size")                           \
  X(MPI_REAL, "mpi_real_size")                 X(MPI_COMPLEX, "mpi_real_size")                              \
  X(MPI_DOUBLE_PRECISION, "mpi_double_precision_size")                                                      \
  X(MPI_DOUBLE_COMPLEX, "mpi_double_complex_supported")                                                     \
  X(MPI_CHARACTER, "mpi_integer_size")         X(MPI_2REAL, "mpi_real_size")                                \
  X(MPI_2DOUBLE_PRECISION, "mpi_double_precision_size")                                                     \
  X(MPI_2INTEGER, "mpi_integer_size")                                                                       \
  X(MPI_LOGICAL1, "mpi_logical1_supported")    X(MPI_LOGICAL2, "mpi_logical2_supported")                    \
  X(MPI_LOGICAL4, "mpi_logical4_supported")    X(MPI_LOGICAL8, "mpi_logical8_supported")                    \
  X(MPI_LOGICAL16, "mpi_logical16_supported")  X(MPI_INTEGER1, "mpi_integer1_supported")                    \
  X(MPI_INTEGER2, "mpi_integer2_supported")    X(MPI_INTEGER4, "mpi_integer4_supported")                    \
  X(MPI_INTEGER8, "mpi_integer8_supported")    X(MPI_INTEGER16, "mpi_integer16_supported")                  \
  X(MPI_REAL2, "mpi_real2_supported")          X(MPI_REAL4, "mpi_real4_supported")                          \
  X(MPI_REAL8, "mpi_real8_supported")          X(MPI_REAL16, "mpi_real16_supported")                        \
  X(MPI_COMPLEX4, "mpi_complex4_supported")    X(MPI_COMPLEX8, "mpi_complex8_supported")                    \
  X(MPI_COMPLEX16, "mpi_complex16_supported")  X(MPI_COMPLEX32, "mpi_complex32_supported")
// clang-format on

// The number of a type in this list, -1 if it is not there.
int row_of(MPI_Datatype type) {
  int row = 0;
#define STRETTO_ROW(mpi_name, key)  \
  if (type == mpi_name) return row; \
  ++row;
  STRETTO_OPTIONAL(STRETTO_ROW)
#undef STRETTO_ROW
  return -1;
}

using GetFortranInfo = int(MPI_Info*);
using GetString = int(MPI_Info, const char*, int*, char*, int*);

// What the host says of Fortran. Null: it says nothing, and may have no Fortran.
class FortranInfo {
 public:
  FortranInfo() {
    auto* const get = reinterpret_cast<GetFortranInfo*>(host_symbol("PMPI_Abi_get_fortran_info"));
    get_string_ = reinterpret_cast<GetString*>(host_symbol("PMPI_Info_get_string"));
    if (get == nullptr || get_string_ == nullptr || get(&info_) != MPI_SUCCESS) info_ = MPI_INFO_NULL;
  }
  ~FortranInfo() {
    if (info_ != MPI_INFO_NULL) g_host.Info_free(&info_);
  }
  FortranInfo(const FortranInfo&) = delete;
  FortranInfo& operator=(const FortranInfo&) = delete;

  // Whether the key is there, and not "false".
  [[nodiscard]] bool says(const char* key) const {
    if (info_ == MPI_INFO_NULL) return false;
    char value[16] = {};
    int length = sizeof value, found = 0;
    return get_string_(info_, key, &length, value, &found) == MPI_SUCCESS && found && std::strcmp(value, "false") != 0;
  }

 private:
  MPI_Info info_ = MPI_INFO_NULL;
  GetString* get_string_ = nullptr;
};

constinit bool g_asked = false;
constinit std::uint32_t g_there = 0;  // a bit for each row

void ask_for_types() {
  const FortranInfo info;
  int row = 0;
#define STRETTO_ASK(mpi_name, key)          \
  if (info.says(key)) g_there |= 1u << row; \
  ++row;
  STRETTO_OPTIONAL(STRETTO_ASK)
#undef STRETTO_ASK
  g_asked = true;
}

}  // namespace

// Any MPI may have this ABI. Those that wrap another one do not pass find_difference() (entry.cpp).
bool recognises(const char* library_version) {
  g_is_intel = std::strstr(library_version, "Intel(R) MPI") != nullptr;
  g_is_mpich = !g_is_intel && std::strstr(library_version, "MPICH") != nullptr;
  g_is_open_mpi = std::strstr(library_version, "Open MPI") != nullptr;
  return true;
}

bool fill_constants(Constants& c) {
  c = {MPI_COMM_NULL, MPI_COMM_SELF,        MPI_COMM_WORLD,    MPI_DATATYPE_NULL, MPI_BYTE, MPI_INT,  MPI_PACKED,
       MPI_INFO_NULL, MPI_ERRORS_ARE_FATAL, MPI_ERRORS_RETURN, MPI_OP_NULL,       MPI_MIN,  MPI_BAND, MPI_REQUEST_NULL};
  return true;
}

void ask_initialized_host(Constants& c) {
  if (!is_last_code(kLastUsedCode) && is_last_code(kLastUsedCodeOfDraft)) {
    c.errors_return = reinterpret_cast<MPI_Errhandler>(kErrorsReturnOfDraft);
  }
}

// The names of Fortran's types are there without the types, too. To ask for the size of such a type
// is an error, which may end the job.
bool has_type(MPI_Datatype type) {
  const int row = row_of(type);
  if (row < 0) return true;
  if (!g_asked) ask_for_types();
  return (g_there >> row & 1) != 0;
}

bool meets_in_init() {
  const char* const asynchronous = g_is_open_mpi ? std::getenv("OMPI_MCA_async_mpi_init") : nullptr;
  return asynchronous == nullptr || std::strchr("0fFnN", *asynchronous) != nullptr;  // 0, false, no, or empty
}

int topology_of(MPI_Comm, int said) { return said; }

bool is_component(const char* name) {
  constexpr const char* kStarts[] = {"libmpi_abi.", "libpmpi_abi.", "libmpl.",    "mca_",
                                     "libmca_",     "libopen-pal",  "libopen_mpi"};
  for (const char* start : kStarts) {
    if (std::strncmp(name, start, std::strlen(start)) == 0) return true;
  }
  return false;
}

bool reports_failures() {
  const auto* const enabled = static_cast<const bool*>(host_symbol("ompi_ftmpi_enabled"));
  return enabled != nullptr && *enabled;
}

// Like MPICH 4 where it is not known. Each costs little where it is not so.
bool requests_keep_handlers() { return false; }

// Of a request that has failed, MPICH and Intel MPI call the error handler.
bool looks_at_requests() { return g_is_open_mpi; }

bool is_complete(MPI_Request request) {
  int flag = 1;
  host().Request_get_status(request, &flag, MPI_STATUS_IGNORE);
  return flag != 0;
}

bool testany_hides_errors() { return false; }
bool testsome_hides_errors() { return g_is_intel || g_is_mpich; }

bool waits_clear_errors() { return !g_is_open_mpi; }

bool yields_when_idle() {
  const auto* const yields = static_cast<const bool*>(host_symbol("opal_progress_yield_when_idle"));
  return g_is_open_mpi && yields != nullptr && *yields;
}

bool nonblocking_gains() { return g_is_mpich; }

bool drive() { return false; }

// As in the MPICH ABI: a poke is slow in Intel MPI.
unsigned poke_every() { return g_is_intel ? 32 : 1; }

}  // namespace stretto::mpi::vendor
