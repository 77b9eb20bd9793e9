// SPDX-License-Identifier: BSD-3-Clause
// The wrappers of functions that Stretto does not serve. They wait for the data of calls that
// returned early (touched.hpp), or wait in the host's place (program_waits.hpp). With a watchdog
// they note what they wait for (noted.hpp), with statistics how long they take (other_call.hpp).
// With a recording they say what they mean (record/recorded.hpp). Then they forward the arguments
// unseen.
//
// In the usual case no call has returned early, ranks have processors, no tool is there, and the
// host's function is known. Then a wrapper is a few loads, two branches and a jump: nothing is
// saved on the stack.
#pragma once
#include <type_traits>

#include "mpi/data/held_handles.hpp"
#include "mpi/overlap/touched.hpp"
#include "mpi/record/recorded.hpp"
#include "mpi/requests/requests.hpp"
#include "mpi/stats/other_call.hpp"
#include "mpi/waits/host_yields.hpp"
#include "mpi/waits/noted.hpp"
#include "mpi/waits/program_waits.hpp"

namespace stretto::mpi {

template <class... Arguments>
[[gnu::always_inline]] inline int call(void* function, Arguments... arguments) {
  return reinterpret_cast<int (*)(Arguments...)>(function)(arguments...);
}

// What may be null for a function: `touched` waits for the memory of the call. `stand_in` makes the
// call by other functions of a host that lacks this one. `waits` waits in the host's place. `fill`
// fills in the call's note. `record` says what a recording has of it.
template <auto step>
inline constexpr bool has_step = !std::is_null_pointer_v<decltype(step)>;

// In the place of `waits`: `serve` serves the call, if some communicator does so by requests.
template <auto serve>
struct Serves {
  template <class... Arguments>
  bool operator()(int* code, Arguments... arguments) const {
    return serve(code, arguments...);
  }
};
// In the same place: `test` drives Stretto's own requests, and makes the host's call if some exist.
template <auto test>
struct Tests {
  template <class... Arguments>
  bool operator()(int* code, Arguments... arguments) const {
    return test(code, arguments...);
  }
};
template <class Step>
inline constexpr bool is_serving = false;
template <auto serve>
inline constexpr bool is_serving<Serves<serve>> = true;

template <auto waits>
[[gnu::always_inline]] inline bool step_needed() {
  if constexpr (is_serving<std::remove_const_t<decltype(waits)>>)
    return g_nonblocking.load(std::memory_order_relaxed);
  else
    return waiting_needed();
}

template <auto touched, auto waits>
[[gnu::always_inline]] inline bool has_more_to_do() {
  bool more = false;
  if constexpr (has_step<touched>) more |= deferring();
  if constexpr (has_step<waits>) more |= step_needed<waits>();
  return more;
}

template <Entry entry, auto stand_in, class... Arguments>
int call_host(const void* caller, Arguments... arguments) {
  if (void* const function = host_entry_if_any(entry, caller)) return call(function, arguments...);
  if constexpr (has_step<stand_in>)
    return stand_in(arguments...);
  else
    entry_missing(entry);
}

// Functions in which the program waits. In tests and in calls that are served it does not.
template <auto waits>
inline constexpr bool is_waiting = std::is_pointer_v<std::remove_const_t<decltype(waits)>>;
template <Entry entry>
inline constinit HostYields g_host_yields;

template <Entry entry, auto stand_in, auto waits, class... Arguments>
int wait_or_call(const void* caller, Arguments... arguments) {
  if constexpr (has_step<waits>) {
    int code = 0;
    if (step_needed<waits>() && may_serve(caller)) {
      if constexpr (is_waiting<waits>) {
        if (host_may_wait() && !g_host_yields<entry>.hold_processor()) {
          const HostYields::Watched watched(g_host_yields<entry>);
          return call_host<entry, stand_in>(caller, arguments...);
        }
      }
      if (waits(&code, arguments...)) return code;
      if constexpr (is_serving<std::remove_const_t<decltype(waits)>>)
        return request_left_to_host(call_host<entry, stand_in>(caller, arguments...));
    }
  }
  return call_host<entry, stand_in>(caller, arguments...);
}

template <Entry entry, auto touched, auto stand_in, auto waits, auto fill, class... Arguments>
int forward_unrecorded(const void* caller, Arguments... arguments) {
  if constexpr (has_step<touched>) {
    if (deferring()) touched(arguments...);
  }
  if constexpr (has_step<fill>) {
    const OtherCall timed(entry, caller);
    const auto make = [&] { return wait_or_call<entry, stand_in, waits>(caller, arguments...); };
    return notes_are_kept() ? make_noted<fill, entry>(caller, make, arguments...) : make();
  } else {
    return wait_or_call<entry, stand_in, waits>(caller, arguments...);
  }
}

template <Entry entry, auto touched, auto stand_in, auto waits, auto fill, auto record, class... Arguments>
[[gnu::cold, gnu::noinline]] int forward_slowly(const void* caller, Arguments... arguments) {
  const auto make = [caller](Arguments... final) {
    return forward_unrecorded<entry, touched, stand_in, waits, fill>(caller, final...);
  };
  if constexpr (has_step<record>) {
    if (recording()) return make_recorded<record, entry>(caller, make, arguments...);
  }
  return make(arguments...);
}

template <Entry entry, auto touched = nullptr, auto stand_in = nullptr, auto waits = nullptr, auto fill = nullptr,
          auto record = nullptr, class... Arguments>
[[gnu::always_inline]] inline int forward(const void* caller, Arguments... arguments) {
  void* const function = g_host_entries[static_cast<int>(entry)].load(std::memory_order_relaxed);
  if (!has_more_to_do<touched, waits>() && function > no_function()) [[likely]]
    return call(function, arguments...);
  return forward_slowly<entry, touched, stand_in, waits, fill, record>(caller, arguments...);
}

template <Entry entry, auto touched, auto stand_in, auto waits, auto fill, auto record, class... Arguments>
[[gnu::cold, gnu::noinline]] int forward_by_tool(const void* caller, Arguments... arguments) {
  if (void* const tool = tool_behind(entry, caller)) return call(tool, arguments...);
  return forward_slowly<entry, touched, stand_in, waits, fill, record>(caller, arguments...);
}

// The same for an MPI_ name.
template <Entry entry, auto touched = nullptr, auto stand_in = nullptr, auto waits = nullptr, auto fill = nullptr,
          auto record = nullptr, class... Arguments>
[[gnu::always_inline]] inline int forward_mpi(const void* caller, Arguments... arguments) {
  if (g_tool_entries[static_cast<int>(entry)].load(std::memory_order_relaxed) == no_function()) [[likely]]
    return forward<entry, touched, stand_in, waits, fill, record>(caller, arguments...);
  return forward_by_tool<entry, touched, stand_in, waits, fill, record>(caller, arguments...);
}

}  // namespace stretto::mpi
