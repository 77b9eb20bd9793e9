// SPDX-License-Identifier: BSD-3-Clause
// A job's ranks on other nodes: what they have committed is brought here when somebody asks for it, what this rank
// commits is sent to them.
//
// A commit travels as one batch, numbered; a rank's batch 0 is empty and says that it is there. Whoever asks for a
// value of a rank on another node fetches its batches, one after the other until there is none, and unpacks each into a
// table of its own, which the node's other processes read. All values of a commit appear at once, as on the node
// itself.
//
// Is what a table has of a rank good enough? A get must see what was committed before this process' last fence. Beside
// the values a table has, for each rank, a record: how many batches, and as of which fence. Fences are the whole job's,
// so every process counts the same ones. A process has counted fence n only when all ranks were in it; if after that it
// asks for the next batch and there is none, its table is complete as of fence n, and good for every process of the
// node that has counted n or fewer. A later fence makes it old, and the next get asks again.
//
// The answer to a query brings all that its rank has sent, a "not found" as well, in all runtimes tried. So the
// query is for a number that nobody uses, and then the process looks at what has come along. It relies on that once
// it has seen it happen, and asks for one batch after the other until then.
//
// A process that has given up a fence has counted one that may not have been: from then on it vouches for nothing, and
// asks each time.
//
// Collecting. To ask each rank, nodes would have as many queries as there are ranks elsewhere. So before a fence that
// collects, the first rank of each node sends a bundle: a batch under the fence's number, whose values are the node's
// batches since its last bundle, named
// "<rank>.<number>", and behind those of a rank an empty one, which says that there are no more. It finds them in the
// ranks' tables, where each keeps what it has sent. After the fence one bundle comes from each other node, and one
// query does, because it is known to be there. The node's processes share the other nodes; where a bundle is missing
// or has gaps, each rank is asked.
//
// Order: a batch's values and the record with its new count are one commit of the table; `fences` of a record is then
// renewed in place (release), and read before the value is looked up (acquire). A rank's own batch is committed before
// its own record counts it (release), which the first rank reads (acquire) before it looks for the batch.
#pragma once
#include <pthread.h>

#include <cstdint>

#include "kv/commit_batch.hpp"
#include "kv/node.hpp"
#include "kv/remote_exchange.hpp"
#include "kv/table.hpp"

namespace stretto::kv {

// Who is where: the job's ranks are 0 to ranks - 1, and those of `here` (ascending) are on this node. The same on all
// nodes: `first`, of each rank the lowest on its node; a rank whose node is not known is its own.
struct Places {
  std::uint32_t ranks = 0;
  const std::uint32_t* here = nullptr;
  unsigned count_here = 0;
  const std::uint32_t* first = nullptr;
};

class RemoteTables {
 public:
  // `path`: of the file by which the node's processes find each other's tables.
  Status open(const char* path, const char* nspace, std::uint32_t rank, const Places& places,
              const RemoteExchange& exchange, std::size_t table_bytes);
  void close();
  [[nodiscard]] bool is_open() const { return exchange_.send != nullptr; }
  [[nodiscard]] bool has(std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t ranks() const { return places_.ranks; }

  // A value to be sent with the next commit; callers hold a lock of theirs.
  Status pack(const char* key, const Value& value) {
    return outgoing_.add(key, value) ? Status::ok : Status::no_memory;
  }
  [[nodiscard]] bool has_packed() const { return !outgoing_.is_empty(); }
  Status send();

  Outcome fence(std::uint64_t timeout_ns);
  // A fence after which the node's processes, together, have all that was committed before. All of them have called
  // send() for the last time before any calls this.
  Outcome collect(std::uint64_t timeout_ns);

  // The value stays where it is until close(). timeout_ns 0: what the node has, however old. `refresh`: asks the other
  // node in any case.
  Outcome get(const Name& name, std::uint64_t timeout_ns, bool refresh, Value* value);

 private:
  struct Record {
    Word batches;
    Word fences;
  };
  static constexpr std::uint64_t kAnyAge = 0, kNever = ~std::uint64_t{0};  // ages, for find()

  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }
  Name record_of(std::uint32_t rank) const;
  std::uint64_t oldest_good();             // of what others have brought
  std::uint64_t age();                     // of what this process brings now
  Record* kept(std::uint32_t rank) const;  // in our own table; null: none. The lock is held
  std::uint64_t batches_of(std::uint32_t rank) const;
  bool find(const Name& name, std::uint64_t as_of, Value* value);
  bool find_own(const Name& name, Value* value);
  Outcome bring(std::uint32_t rank, std::uint64_t timeout_ns);
  Outcome bring_each(std::uint32_t rank, std::uint64_t number, std::uint64_t as_of, std::uint64_t timeout_ns);
  Outcome ask(std::uint32_t rank, std::uint64_t number, std::uint64_t timeout_ns);
  Outcome unpack_here(std::uint32_t rank, std::uint64_t* number);
  Outcome unpack(std::uint32_t rank, std::uint64_t number, const void* data, std::size_t bytes);
  Outcome none_after(std::uint32_t rank, std::uint64_t batches, std::uint64_t as_of);
  Status record(std::uint32_t rank, std::uint64_t batches, std::uint64_t fences);

  Status copy_places(const Places& places);
  void keep(const void* data, std::size_t bytes);
  bool table_of(std::uint32_t rank, TableView* view);
  void add_sent(unsigned place, CommitBatch* bundle);
  void send_bundle(std::uint64_t number);
  void bring_bundle(std::uint32_t first, std::uint64_t number, std::uint64_t timeout_ns);
  bool is_complete(std::uint32_t rank);

  pthread_mutex_t mutex_ = PTHREAD_MUTEX_INITIALIZER;  // never held while the exchange is used
  RemoteExchange exchange_;
  Table table_;
  Node node_;
  CommitBatch outgoing_;
  char nspace_[256] = {};
  std::uint32_t rank_ = 0;
  Places places_;
  std::uint32_t* here_ = nullptr;
  std::uint32_t* first_ = nullptr;
  bool* mine_ = nullptr;              // of each rank: whether this process brings what its node has collected
  std::uint64_t* bundled_ = nullptr;  // of each rank here: batches that were in bundles
  Record* sent_record_ = nullptr;     // of this rank, in our own table
  std::uint64_t sent_ = 0;            // batches
  std::uint64_t fences_ = 1;          // that have been, and one: 0 is no age
  bool out_of_step_ = false;          // a fence has failed here
  bool answers_whole_ = false;        // one has brought more than it was asked for
  bool full_ = false;                 // a batch did not fit: nothing may be committed after half of it
};

}  // namespace stretto::kv
