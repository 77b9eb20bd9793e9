// SPDX-License-Identifier: BSD-3-Clause
// Every import of an object has a relocation, so Stretto reads those. It does not read the table of
// symbols, because an object does not say how long that is.
#include "mpi/host/imports.hpp"

#include <elf.h>
#include <link.h>

#include <atomic>
#include <cstdio>

#include "base/ascii.hpp"
#include "mpi/host/discover.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {
namespace {

// By their beginnings, without MPIX_ and in small letters: names of Fortran have more behind.
constexpr const char* kHarmless[] = {
    // of Stretto's: they have wrappers
    "request_is_complete", "stream_progress",
    // failures of processes: Stretto serves nothing beside an MPI that reports them
    "comm_ack_failed", "comm_agree", "comm_failure_ack", "comm_failure_get_acked", "comm_get_failed", "comm_iagree",
    "comm_is_revoked", "comm_revoke", "comm_shrink",
    // handlers, operations, datatypes and facts: they take no request
    "comm_create_errhandler_x", "comm_get_stream", "comm_test_threadcomm", "delete_error_", "file_create_errhandler_x",
    "gpu_query_support", "info_set_hex", "op_create_x", "query_", "session_create_errhandler_x", "type_iov",
    "win_create_errhandler_x",
    // requests of the program's own
    "grequest_",
    // the MPI's messages and windows, with the MPI's requests
    "get_notify", "put_notify", "start_progress_thread", "stop_progress_thread", "stream_comm_create", "stream_create",
    "stream_free", "stream_irecv", "stream_isend", "stream_recv", "stream_send", "win_create_notify", "win_free_notify",
    "win_get_notify", "win_set_notify",
    // persistent collectives of Open MPI 4, which has none by the standard's names
    "allgather_init", "allgatherv_init", "allreduce_init", "alltoall_init", "alltoallv_init", "alltoallw_init",
    "barrier_init", "bcast_init", "exscan_init", "gather_init", "gatherv_init", "neighbor_", "reduce_init",
    "reduce_scatter_", "scan_init", "scatter_init", "scatterv_init"};

bool begins_with(const char* name, const char* start) {
  while (*start != 0 && lower(*name) == *start) ++name, ++start;
  return *start == 0;
}

// MPIX_Continue, PMPIX_Continue and mpix_continue_ alike.
bool forbids(const char* symbol) {
  if (lower(*symbol) == 'p') ++symbol;
  if (!begins_with(symbol, "mpix_")) return false;
  for (const char* harmless : kHarmless) {
    if (begins_with(symbol + 5, harmless)) return false;
  }
  return true;
}

// The dynamic section of an object. glibc has made its addresses absolute, except in the vDSO.
struct Dynamic {
  const ElfW(Sym) * symbols = nullptr;
  const char* strings = nullptr;
  struct Table {
    const ElfW(Rela) * first = nullptr;
    std::size_t bytes = 0;
  } of_data, of_calls;

  Dynamic(const ElfW(Dyn) * entry, ElfW(Addr) base) {
    const auto at = [&](const ElfW(Dyn) & d) { return d.d_un.d_ptr < base ? base + d.d_un.d_ptr : d.d_un.d_ptr; };
    for (; entry->d_tag != DT_NULL; ++entry) {
      switch (entry->d_tag) {
        case DT_SYMTAB: symbols = reinterpret_cast<const ElfW(Sym)*>(at(*entry)); break;
        case DT_STRTAB: strings = reinterpret_cast<const char*>(at(*entry)); break;
        case DT_RELA: of_data.first = reinterpret_cast<const ElfW(Rela)*>(at(*entry)); break;
        case DT_RELASZ: of_data.bytes = entry->d_un.d_val; break;
        case DT_JMPREL: of_calls.first = reinterpret_cast<const ElfW(Rela)*>(at(*entry)); break;
        case DT_PLTRELSZ: of_calls.bytes = entry->d_un.d_val; break;
        default: break;
      }
    }
  }

  [[nodiscard]] const char* forbidden_in(const Table& table) const {
    if (table.first == nullptr || symbols == nullptr || strings == nullptr) return nullptr;
    for (std::size_t i = 0; i < table.bytes / sizeof(ElfW(Rela)); ++i) {
      const ElfW(Sym) & symbol = symbols[ELF64_R_SYM(table.first[i].r_info)];
      const bool imported = symbol.st_name != 0 && symbol.st_shndx == SHN_UNDEF;
      if (imported && forbids(strings + symbol.st_name)) return strings + symbol.st_name;
    }
    return nullptr;
  }
};

// How many objects had been loaded when none of them imported such a function.
constinit std::atomic<unsigned long long> g_harmless_until{0};

struct Search {
  char* name;
  std::size_t capacity;
  unsigned long long loaded = 0;
};

const char* forbidden_in(const dl_phdr_info& object) {
  for (int i = 0; i < object.dlpi_phnum; ++i) {
    const auto& header = object.dlpi_phdr[i];
    if (header.p_type != PT_DYNAMIC) continue;
    const auto* const section = reinterpret_cast<const ElfW(Dyn)*>(object.dlpi_addr + header.p_vaddr);
    const Dynamic dynamic(section, object.dlpi_addr);
    const char* const called = dynamic.forbidden_in(dynamic.of_calls);
    return called != nullptr ? called : dynamic.forbidden_in(dynamic.of_data);
  }
  return nullptr;
}

// What the MPI's own libraries import is none of the program's calls.
int look_at(dl_phdr_info* object, std::size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  search.loaded = object->dlpi_adds;
  if (search.loaded == g_harmless_until.load(std::memory_order_relaxed)) return 1;
  const char* const library = base_name(object->dlpi_name);
  if (looks_like_mpi(library) || vendor::is_component(library)) return 0;
  const char* const found = forbidden_in(*object);
  if (found == nullptr) return 0;
  std::snprintf(search.name, search.capacity, "%s", found);
  return 1;
}

}  // namespace

bool find_import_that_forbids_requests(char* name, std::size_t capacity) {
  *name = 0;
  Search search{name, capacity};
  dl_iterate_phdr(look_at, &search);
  if (*name != 0) return true;
  g_harmless_until.store(search.loaded, std::memory_order_relaxed);
  return false;
}

}  // namespace stretto::mpi
