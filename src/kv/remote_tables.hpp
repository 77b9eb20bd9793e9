// SPDX-License-Identifier: BSD-3-Clause
// A job's ranks on other nodes. When a process asks for what they have committed, it is brought
// here. What this rank commits is sent to them.
//
// A commit travels as one numbered batch. A rank's batch 0 is empty and says that the rank is
// there. A process that asks for a value of a rank on another node fetches that rank's batches, one
// after the other, until there is none. It unpacks each batch into a table of its own, which the
// node's other processes read. All values of a commit appear at once, as on the node itself.
//
// Is what a table has of a rank good enough? A get must see what was committed before this
// process's last fence. For each rank a table has, beside the values, a record: how many batches,
// and as of which fence. Fences are the whole job's, so every process counts the same ones. A
// process has counted fence n only when all ranks were in it. If it then asks for the next batch
// and there is none, its table is complete as of fence n. The table is good for every process of
// the node that has counted n or fewer fences. A later fence makes it old, and the next get asks
// again.
//
// In all runtimes tried, the answer to a query brings all that its rank has sent, also if the
// answer is "not found". So the process queries a number that nobody uses, and then looks at what
// has come along. It relies on that once it has seen it happen. Until then it asks for one batch
// after the other.
//
// A process that has given up a fence has counted one that may not have been. From then on it
// claims nothing about its table's age, and asks each time.
//
// Collecting. If each rank were asked, a node would make as many queries as there are ranks
// elsewhere. Before a fence that collects, the first rank of each node therefore sends a bundle. A
// bundle is a batch under the fence's number. Its values are the batches that the node's ranks have
// sent since the last bundle, named "<rank>.<number>". An empty value after a rank's batches says
// that there are no more. The first rank finds the batches in the ranks' tables, where each rank
// keeps what it has sent. After the fence one bundle comes from each other node. One query is
// enough for it, because the bundle is known to exist. The node's processes share the other nodes
// among them. Where a bundle is missing or has gaps, each rank is asked.
//
// Order: a batch's values and the record with its new count are one commit of the table. A record's
// `fences` is renewed in place (release), and read before the value is looked up (acquire). A rank
// commits its own batch before its own record counts it (release). The first rank reads that record
// (acquire) before it looks for the batch.
#pragma once
#include <pthread.h>

#include <cstdint>

#include "kv/commit_batch.hpp"
#include "kv/node.hpp"
#include "kv/remote_exchange.hpp"
#include "kv/table.hpp"

namespace stretto::kv {

// Which rank is where. The job's ranks are 0 to ranks - 1. Those of `here` (ascending) are on this
// node. `first` has for each rank the lowest rank on its node, and is the same on all nodes. A rank
// whose node is not known is its own first.
struct Places {
  std::uint32_t ranks = 0;
  const std::uint32_t* here = nullptr;
  unsigned count_here = 0;
  const std::uint32_t* first = nullptr;
};

// How long a process naps at least before it asks another node again.
inline constexpr std::uint64_t kShortestNapNs = 1'000'000;

// The key of a batch that a rank has sent, in the rank's table. Names point to it.
struct SentKey {
  char text[64];
  explicit SentKey(std::uint64_t number);
};

class RemoteTables {
 public:
  // `path` is the file by which the node's processes find each other's tables.
  Status open(const char* path, const char* nspace, std::uint32_t rank, const Places& places,
              const RemoteExchange& exchange, std::size_t table_bytes);
  void close();
  [[nodiscard]] bool is_open() const { return exchange_.send != nullptr; }
  [[nodiscard]] bool has(std::uint32_t rank) const;
  [[nodiscard]] std::uint32_t ranks() const { return places_.ranks; }

  // Adds a value to the next commit. Callers hold a lock of theirs.
  Status pack(const char* key, const Value& value) {
    return outgoing_.add(key, value) ? Status::ok : Status::no_memory;
  }
  [[nodiscard]] bool has_packed() const { return !outgoing_.is_empty(); }
  Status send();

  Outcome fence(std::uint64_t timeout_ns);
  // A fence after which the node's processes, together, have all that was committed before. Before
  // any process calls this, all of them have called send() for the last time.
  Outcome collect(std::uint64_t timeout_ns);

  // The value stays where it is until close(). With timeout_ns 0 the call returns what the node
  // has, however old. With `refresh` it asks the other node in any case.
  Outcome get(const Name& name, std::uint64_t timeout_ns, bool refresh, Value* value);

 private:
  struct Record {
    Word batches;
    Word fences;
  };
  static constexpr std::uint64_t kAnyAge = 0, kNever = ~std::uint64_t{0};  // ages, for find()

  void lock() { pthread_mutex_lock(&mutex_); }
  void unlock() { pthread_mutex_unlock(&mutex_); }
  // From here on, numbers are those of bundles: kBundles plus the number of the fence that follows.
  // No fence has number 0, so nobody uses kBundles itself.
  static constexpr std::uint64_t kBundles = std::uint64_t{1} << 63, kNobodys = kBundles;

  Name record_of(std::uint32_t rank) const;
  std::uint64_t oldest_good();             // the least age for what others have brought
  std::uint64_t age();                     // the age of what this process brings now
  Record* kept(std::uint32_t rank) const;  // in this process's table; null: none. The caller holds the lock
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
  bool* mine_ = nullptr;              // by rank: whether this process brings what that rank's node has collected
  std::uint64_t* bundled_ = nullptr;  // for each rank here: batches that were in bundles
  Record* sent_record_ = nullptr;     // this rank's, in this process's table
  std::uint64_t sent_ = 0;            // in batches
  std::uint64_t fences_ = 1;          // the fences so far, plus one: 0 is no age
  bool out_of_step_ = false;          // a fence has failed in this process
  bool answers_whole_ = false;        // an answer has brought more than was asked for
  bool full_ = false;                 // a batch did not fit: after half of it nothing may be committed
};

}  // namespace stretto::kv
