// SPDX-License-Identifier: BSD-3-Clause
// Where calls come from (shm/call_sites.hpp), as this process finds it out.
//
// The first call from a file adds the file to a list, which the segment has, too. Further calls
// from it cost nothing. If dlopen has loaded the file, they cost a comparison of names. The rest is
// for a thread that has waited for long.
#pragma once
#include <cstdint>

#include "mpi/host/callers.hpp"
#include "shm/call_sites.hpp"

namespace stretto::mpi {

// The files whose code has called.
extern constinit shm::Modules g_call_modules;

// Called for each call whose range the entry does not know. Returns false if peers cannot be told
// of the file now: the entry then asks again at the next call.
[[gnu::noinline]] bool call_site_seen(std::uintptr_t caller, const CallerRange& range, const LoadedObject& object);

// Who tells peers of files that are added: `follow` returns false if that must be done later. Null:
// there are no peers yet.
void call_sites_followed_by(bool (*follow)());

// engine::Sources::locate. A call through a binding of the MPI, for Fortran or C++, is taken to the
// program's own. A thread that runs Python says its line.
bool call_site_locate(std::uint64_t caller, shm::SourceLine* line);

}  // namespace stretto::mpi
