// SPDX-License-Identifier: BSD-3-Clause
// What this process' PMIx_Gets have brought, kept, and shared with the node's other processes.
//
// Each process has a table (kv/table.hpp) in its own segment and an entry in a file in the runtime's session directory
// (PMIX_SERVER_TMPDIR), by which the clients of one server find each other. The runtime removes the directory with the
// session. Without it, what is kept is not shared.
//
// When may a kept value answer? Values of the job: always. What ranks have put may be put again, and PMIx promises that
// a get after a fence sees what was committed before it; without a fence an older value is fine (its own library
// caches, too). So:
//   - a value that this process has been given answers until its next fence, or until it refreshes a key of that rank:
//   the library
//     brings all of the rank then;
//   - a value in another process' table answers if it is fresh since this process' last fence, or refresh of that rank.
//   How fresh it is says its
//     stamp: when that process first asked for anything of that rank, or asked for a refresh. Later answers may come
//     out of its library's cache, which was filled then.
// Stamps are of the monotonic clock, which is one for all processes of a node.
//
// A library that fetches one key of a rank gets all that the rank has committed, and answers from that afterwards.
// Where another process' table has answered instead, this process' library is behind: it would answer the next query
// about the rank with what was there before, or with nothing. So it fetches the key that was shown first, and then
// looks for the one that was asked for.
#pragma once
#include <pmix.h>
#include <pthread.h>

#include <cstdint>

#include "kv/node.hpp"
#include "kv/table.hpp"
#include "pmix/query.hpp"

namespace stretto::pmix {

struct Counts {
  std::uint64_t own = 0, shared = 0, missed = 0, passed = 0;  // gets, by who answered
};

class ValueCache {
 public:
  // When and under which fence a query was put to the PMIx library; both are read before it is asked.
  struct Asked {
    std::uint64_t at_ns, fences;
  };

  bool open(const pmix_proc_t& self);
  void close();

  // The value kept, as the caller's own; null: ask the PMIx library.
  pmix_value_t* find(const kv::Name& name, Kind kind);
  // Whether the PMIx library is behind with a rank; `key`: what it is to be asked for, refreshing. It has caught up
  // when that is learned.
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
  void drop_all();  // but for values of the job
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
