// SPDX-License-Identifier: BSD-3-Clause
// What a PMIx_Get asks for, and whether Stretto may answer it.
//
//   job    fixed when the job starts (its size, where its ranks are): always the same, for every
//          process on the node
//   modex  what another rank has put under a key of its own: good until this process's next fence
//   pass   everything else: values that depend on the asking process or change (PMIX_LOCALITY,
//          sizes of a node or session); this process's own data, because its own puts count at
//          once; queries for all keys or any rank; directives that Stretto does not know
#pragma once
#include <pmix.h>

#include <cstdint>

namespace stretto::pmix {

enum class Kind : std::uint8_t { pass, job, modex };

struct Query {
  Kind kind = Kind::pass;
  bool refresh = false;  // PMIX_GET_REFRESH_CACHE: kept values do not count
  bool put = false;      // asks for what another rank has put, also if Stretto may not answer
};
Query classify(const pmix_proc_t* proc, const pmix_proc_t& self, const char* key, const pmix_info_t* info,
               std::size_t infos);

}  // namespace stretto::pmix
