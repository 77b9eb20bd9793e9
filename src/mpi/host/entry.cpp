// SPDX-License-Identifier: BSD-3-Clause
// At the first call Stretto finds the host MPI, checks that its ABI is ours, and looks for tools.
// At later calls it finds out who is calling.
#include "mpi/host/entry.hpp"

#include <dlfcn.h>
#include <pthread.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/log.hpp"
#include "mpi/host/call_sites.hpp"
#include "mpi/host/discover.hpp"
#include "mpi/host/host.hpp"
#include "mpi/vendor/vendor.hpp"

namespace stretto::mpi {

constinit std::atomic<Mode> g_mode{Mode::unresolved};
constinit std::atomic<void*> g_host_entries[kEntries] = {};
constinit std::atomic<void*> g_noted_entries[kEntries] = {};
constinit std::atomic<void*> g_tool_entries[kEntries] = {};
constinit std::atomic<std::uint64_t> g_caller_lookups{0};
constinit bool g_watched = false;
constinit bool g_timed = false;
constinit bool g_recorded = false;
constinit Host g_host = {};
thread_local constinit Thread t_thread STRETTO_TLS = {};

namespace {

constinit HostLibrary g_library;
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;

// The host's PMPI_ function. If the host has no PMPI_ names, its MPI_ function.
void* look_up_host(const EntryFacts& facts, const void* caller) {
  const char* name = nullptr;
  void* const function = g_library.handle != nullptr ? dlsym(g_library.handle, facts.pmpi_name) : nullptr;
  const bool beside_us = function != nullptr && object_of(function, &name) != object_of(&g_library, &name);
  return beside_us ? function : next_definition(facts.name, caller);
}

void* look_up_tool(const EntryFacts& facts) {
  if (g_library.handle == nullptr) return nullptr;
  const char* name = nullptr;
  void* const next = dlsym(RTLD_NEXT, facts.name);
  if (next == nullptr || object_of(next, &name) == g_library.base || is_in_mpi_library(next)) return nullptr;
  return vendor::is_component(name) ? nullptr : next;  // an MPI can have its PMPI_ names in a library of their own
}

// What the table has, or what `look_up` finds. Null: there is no such function.
template <class LookUp>
void* find_in(std::atomic<void*>& place, const LookUp& look_up) {
  void* function = place.load(std::memory_order_relaxed);
  if (function == nullptr) {
    function = look_up();
    if (function == nullptr) function = no_function();
    place.store(function, std::memory_order_relaxed);
  }
  return function == no_function() ? nullptr : function;
}

bool fill_host() {
  bool complete = true;
  g_host.library = g_library.handle;
#define STRETTO_FIND(function) \
  g_host.function = reinterpret_cast<decltype(g_host.function)>(dlsym(g_library.handle, "PMPI_" #function));
#define STRETTO_REQUIRE(function) STRETTO_FIND(function) complete = complete && g_host.function != nullptr;
  STRETTO_HOST_REQUIRED(STRETTO_REQUIRE)
  STRETTO_HOST_OPTIONAL(STRETTO_FIND)
#undef STRETTO_REQUIRE
#undef STRETTO_FIND
  return vendor::fill_constants(g_host.constants) && complete;
}

constinit char g_version[8192] = {};  // MPICH needs up to 8 KiB

// Each process decides alone to stand aside: all ranks of a job have the same kind of MPI. If the
// launcher tells ranks, only rank 0 says why.
void say_why_aside(const char* why) {
  if (vendor::launcher_rank() > 0) return;
  const int length = static_cast<int>(std::strcspn(g_version, ",\n"));
  log_line(LogLevel::warn, "standing aside: libstretto-%s.so is for %s, but this program uses %s%.*s%s", vendor::kAbi,
           vendor::kFamily, g_library.standard_abi ? "the MPI 5 ABI library of " : "", length, g_version, why);
}

// Whether the host itself has the symbol of this ABI's handles. A library that wraps
// another one may lack it.
bool has_own_handles(const char* handle_symbol) {
  if (handle_symbol == nullptr) return true;
  const void* const symbol = dlsym(g_library.handle, handle_symbol);
  const char* name = nullptr;
  return symbol != nullptr && object_of(symbol, &name) == g_library.base;
}

// Whether the host may have our ABI, and has all functions that Stretto needs. After MPI_Init
// host_is_proven() decides.
bool may_be_ours() {
  const auto get_version = reinterpret_cast<int (*)(char*, int*)>(dlsym(g_library.handle, "PMPI_Get_library_version"));
  int length = 0;
  if (get_version == nullptr || get_version(g_version, &length) != 0) return false;
  const char* why = nullptr;
  if (g_library.standard_abi != vendor::kIsStandard || !vendor::recognises(g_version)) {
    why = "";
  } else if (g_library.is_program) {
    why = ", linked statically: not all of its calls can be seen";
  } else if (!has_own_handles(vendor::kHandleSymbol)) {
    why = ", whose handles differ";
  } else if (!fill_host()) {
    why = ", which lacks functions that Stretto needs";
  }
  if (why != nullptr) say_why_aside(why);
  return why == nullptr;
}

// ---- Proof of the ABI ----

// Returns null, or what shows that the host's handles are not those of our mpi.h. First the host
// writes a new handle into memory whose bytes are known, which shows the size of handles. Then it
// overwrites the handle with MPI_INFO_NULL, whose value is compared. After these two tests Stretto
// gives handles of its own to the host, not earlier.
const char* find_difference() {
  if (vendor::kIsStandard && has_other_mpi(g_library)) return ", which wraps another MPI";
  constexpr unsigned char kUntouched = 0xa5;
  alignas(16) unsigned char memory[4 * sizeof(MPI_Info)];
  std::memset(memory, kUntouched, sizeof memory);
  auto* const info = reinterpret_cast<MPI_Info*>(memory);
  if (g_host.Info_create(info) != MPI_SUCCESS) return ", which makes no info object";
  const auto all_untouched = [&](std::size_t from, std::size_t to) {
    while (from < to && memory[from] == kUntouched) ++from;
    return from == to;
  };
  const bool wide = !all_untouched(sizeof(MPI_Info), sizeof memory);
  const bool narrow = all_untouched(sizeof(MPI_Info) / 2, sizeof(MPI_Info));
  g_host.Info_free(info);
  if (wide || narrow) return ", whose handles have another size";
  if (std::memcmp(memory, &g_host.constants.info_null, sizeof(MPI_Info)) != 0)
    return ", whose handles have other values";
  MPI_Count bytes = 0, ints = 0;
  g_host.Type_size_x(g_host.constants.byte, &bytes);
  g_host.Type_size_x(g_host.constants.int_, &ints);
  return bytes == 1 && ints == sizeof(int) ? nullptr : ", whose datatypes differ";
}

enum class Proof : std::uint8_t { none, ours, differs };
constinit std::atomic<Proof> g_proof{Proof::none};

}  // namespace

// The linker may have copied data of a library into the program (copy relocation). The library
// itself then uses that copy, which is the first in the global scope. A library that was loaded
// locally is not in the global scope, so its handle is asked.
void* host_symbol(const char* name) {
  void* const global = dlsym(RTLD_DEFAULT, name);
  return global != nullptr ? global : dlsym(g_library.handle, name);
}

void host_version(char* text, std::size_t capacity) {
  std::snprintf(text, capacity, "%.*s", static_cast<int>(std::strcspn(g_version, ",\n")), g_version);
}

void resolve(const void* caller) {
  pthread_mutex_lock(&g_lock);
  if (g_mode.load(std::memory_order_relaxed) == Mode::unresolved) {
    g_library = find_host(caller);
    const auto find_object = reinterpret_cast<FindObject>(dlsym(RTLD_DEFAULT, "_dl_find_object"));
    callers_start(g_library.base, vendor::is_component, find_object);
    const bool serve = g_library.handle != nullptr && may_be_ours() && lifecycle_begin();
    g_mode.store(serve ? Mode::serving : Mode::aside, std::memory_order_release);  // pairs with the loads of may_serve
  }
  pthread_mutex_unlock(&g_lock);
}

void* find_host_entry(Entry entry, const void* caller) {
  const int e = static_cast<int>(entry);
  resolve_once(caller);  // then it is known whether calls are watched or timed
  const bool is_collective = kEntryFacts[e].kind == observe::OtherKind::none;
  const bool is_slow = g_recorded || ((g_watched || g_timed) && !is_collective);
  auto& entries = is_slow ? g_noted_entries : g_host_entries;
  return find_in(entries[e], [&] { return look_up_host(kEntryFacts[e], caller); });
}

void* find_tool_entry(Entry entry, const void* caller) {
  const int e = static_cast<int>(entry);
  resolve_once(caller);
  void* const tool = find_in(g_tool_entries[e], [&] { return look_up_tool(kEntryFacts[e]); });
  if (tool == nullptr || t_thread.depth != 0 || is_inside_host(caller)) return nullptr;
  // The tool may call Stretto by the PMPI_ name, which then sets another path.
  if (kEntryFacts[e].collective != Collective::count_) t_thread.last_path = kPathNames[static_cast<int>(Path::host)];
  return tool;
}

bool host_is_proven() {
  if (const Proof proof = g_proof.load(std::memory_order_acquire); proof != Proof::none) [[likely]]
    return proof == Proof::ours;
  const Inside inside;
  pthread_mutex_lock(&g_lock);
  if (g_proof.load(std::memory_order_relaxed) == Proof::none) {
    const char* const difference = find_difference();
    if (difference != nullptr) {
      say_why_aside(difference);
      g_mode.store(Mode::aside, std::memory_order_release);
    }
    g_proof.store(difference == nullptr ? Proof::ours : Proof::differs,
                  std::memory_order_release);  // pairs with the load above
  }
  pthread_mutex_unlock(&g_lock);
  return g_proof.load(std::memory_order_relaxed) == Proof::ours;
}

bool judge_caller(std::uintptr_t address) {
  LoadedObject object;
  const CallerRange range = caller_range(address, &object);
  const bool known = range.inside || call_site_seen(address, range, object);
  if (range.bytes != 0) {
    t_thread.caller = known ? range : CallerRange{};
  } else if (g_timed) {
    g_caller_lookups.fetch_add(1, std::memory_order_relaxed);
  }
  return range.inside;
}

void entry_missing(Entry entry) {
  const char* const name = kEntryFacts[static_cast<int>(entry)].name;
  if (g_library.handle != nullptr) {
    log_line(LogLevel::error, "%s was called, but this MPI does not have it", name);
  } else {
    log_line(LogLevel::error, "%s was called, but no MPI library is loaded", name);
  }
  log_end_process();  // there is no function to forward to, and no communicator whose error handler could be called
}

}  // namespace stretto::mpi
