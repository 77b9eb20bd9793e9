// SPDX-License-Identifier: BSD-3-Clause
// Keeps what this process's PMIx_Gets have brought, and shares it with the node's other processes.
//
// Each process has a table (kv/table.hpp) in its own segment. It also has an entry in a file in the
// runtime's session directory (PMIX_SERVER_TMPDIR), by which the clients of one server find each
// other. The runtime removes the directory with the session. Without the directory, processes do
// not share what they keep.
//
// When may a kept value answer? A value of the job: always. A rank may put a value again, and PMIx
// promises that a get after a fence sees what was committed before it. Without a fence an older
// value is allowed; PMIx's own library caches, too. This gives two rules:
// - A value that this process has been given answers until its next fence. It stops earlier if the
//   process refreshes a key of that rank, because the library then brings all of the rank.
// - A value in another process's table answers if it is fresh. That means: fresh since this
//   process's last fence, and since its last refresh of that rank. A stamp says how fresh the value
//   is: when that process first asked for anything of that rank, or last asked for a refresh. Its
//   later answers may come out of its library's cache, which was filled then.
//
// Stamps are times of the monotonic clock, which is one for all processes of a node.
//
// A library that fetches one key of a rank gets all that the rank has committed, and answers from
// that afterwards. When another process's table has answered, this process's library is behind. It
// would answer the next query about the rank with what was there before, or with nothing. It
// therefore first fetches the key that the other table has answered, and then looks for the key
// that was asked for.
#pragma once
#include <pmix.h>
#include <pthread.h>

#include <cstdint>

#include "kv/node.hpp"
#include "kv/table.hpp"
#include "pmix/query.hpp"

namespace stretto::pmix {

struct Counts {
  std::uint64_t own = 0, shared = 0, missed = 0, passed = 0;  // gets, by which of them answered
};

class ValueCache {
 public:
  // When, and after which fence, the PMIx library was asked. Both are read before it is asked.
  struct Asked {
    std::uint64_t at_ns, fences;
  };

  bool open(const pmix_proc_t& self);
  void close();

  // The kept value, which the caller then owns. null: the caller asks the PMIx library.
  pmix_value_t* find(const kv::Name& name, Kind kind);
  // Whether the PMIx library is behind with a rank. The caller then asks it for `key` with a
  // refresh. When the answer has been learned, the library has caught up.
  bool is_behind(const pmix_proc_t& proc, char (&key)[PMIX_MAX_KEYLEN + 1]) const;
  [[nodiscard]] Asked asking() const;
  void learn(const kv::Name& name, Query query, Asked asked, const pmix_value_t& value);
  void fenced();
  void pass() { count(&Counts::passed); }
  [[nodiscard]] Counts counts();

 private:
  struct Kept;
  struct Note;
  void lock() const { pthread_mutex_lock(&mutex_); }
  void unlock() const { pthread_mutex_unlock(&mutex_); }
  void count(std::uint64_t Counts::* which) { __atomic_fetch_add(&(counts_.*which), 1, __ATOMIC_RELAXED); }
  void drop_all();  // except values of the job
  [[nodiscard]] std::uint64_t least_stamp(const kv::Name& name) const;
  pmix_value_t* find_own(const kv::Name& name, Kind kind, std::uint64_t least);
  pmix_value_t* find_shared(const kv::Name& name, Kind kind, std::uint64_t least);
  void keep(const kv::Name& name, std::uint64_t stamp, const kv::Value& value);
  [[nodiscard]] Note note(const kv::Name& name) const;
  bool borrow(const kv::Name& name);
  std::uint64_t first_asked(const kv::Name& name, const Asked& asked, bool refresh);

  mutable pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;
  kv::Table table_;
  kv::Node node_;
  bool shares_ = false;
  bool full_ = false;
  std::uint64_t fences_ = 0;
  std::uint64_t refreshed_ = 0;  // the fence after which a rank was last refreshed
  std::uint64_t fenced_at_ns_ = 0;
  char* scratch_ = nullptr;
  std::size_t scratch_bytes_ = 0;
  Counts counts_;
};

}  // namespace stretto::pmix
