// SPDX-License-Identifier: BSD-3-Clause
// What a PMIx_Get asks for, and whether we may answer it.
//
//   job     fixed when the job starts (its size, where its ranks are): the same for every asker on the node, for ever
//   modex   what another rank has put under a key of its own: good until this process' next fence
//   pass    everything else: what depends on the asker or changes (PMIX_LOCALITY, sizes of a node or session), data of
//   one's own
//           (one's own puts count at once), queries about all keys or any rank, directives that we do not know
#pragma once
#include <pmix.h>

#include <cstdint>

namespace stretto::pmix {

enum class Kind : std::uint8_t { pass, job, modex };

struct Query {
  Kind kind = Kind::pass;
  bool refresh = false;  // PMIX_GET_REFRESH_CACHE: whatever is kept does not count
  bool put = false;      // about what another rank has put, whoever may answer
};
Query classify(const pmix_proc_t* proc, const pmix_proc_t& self, const char* key, const pmix_info_t* info,
               std::size_t infos);

}  // namespace stretto::pmix
