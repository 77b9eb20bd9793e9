// SPDX-License-Identifier: BSD-3-Clause
// The wrappers of functions that Stretto does not serve: they wait for the data of calls that
// returned early, and forward the arguments unseen.
//
// In the usual case no call has returned early, no tool is there, and the host's function is known.
// Then a wrapper is three loads with a branch each, and a jump: nothing is saved on the stack.
#pragma once
#include "mpi/entry.hpp"
#include "mpi/touched.hpp"

namespace stretto::mpi {

template <class... Arguments>
[[gnu::always_inline]] inline int call(void* function, Arguments... arguments) {
  return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

template <Entry entry, auto touched, auto narrowed, class... Arguments>
[[gnu::cold, gnu::noinline]] int forward_slowly(const void* caller, Arguments... arguments) {
  if (deferring()) touched(arguments...);
  if (void* const function = host_entry_if_any(entry, caller)) return call(function, arguments...);
  if constexpr (narrowed != nullptr)
    return narrowed(arguments...);
  else
    entry_missing(entry);
}

// `touched` waits for the memory of the call. `narrowed`, for a _c function, calls the host's int
// function.
template <Entry entry, auto touched, auto narrowed = nullptr, class... Arguments>
[[gnu::always_inline]] inline int forward(const void* caller, Arguments... arguments) {
  void* const function = g_host_entries[static_cast<int>(entry)].load(std::memory_order_relaxed);
  if (!deferring() && function > no_function()) [[likely]]
    return call(function, arguments...);
  return forward_slowly<entry, touched, narrowed>(caller, arguments...);
}

template <Entry entry, auto touched, auto narrowed, class... Arguments>
[[gnu::cold, gnu::noinline]] int forward_by_tool(const void* caller, Arguments... arguments) {
  if (void* const tool = tool_behind(entry, caller)) return call(tool, arguments...);
  return forward_slowly<entry, touched, narrowed>(caller, arguments...);
}

// The same for an MPI_ name.
template <Entry entry, auto touched, auto narrowed = nullptr, class... Arguments>
[[gnu::always_inline]] inline int forward_mpi(const void* caller, Arguments... arguments) {
  if (g_tool_entries[static_cast<int>(entry)].load(std::memory_order_relaxed) == no_function()) [[likely]]
    return forward<entry, touched, narrowed>(caller, arguments...);
  return forward_by_tool<entry, touched, narrowed>(caller, arguments...);
}

}  // namespace stretto::mpi
