// SPDX-License-Identifier: BSD-3-Clause
#include "calls.hpp"

#include <cstdlib>
#include <cstring>

#include "base/tuning.hpp"
#include "coll/shm/manifest.hpp"
#include "select/shm_rules.hpp"

namespace stretto::node {
namespace {

constexpr int kRoot = 0;
constexpr std::size_t kPage = 4096;

char* pages(std::size_t bytes) {
  void* const memory = std::aligned_alloc(kPage, (bytes + kPage) / kPage * kPage);
  if (!memory) std::abort();
  std::memset(memory, 0, bytes);
  return static_cast<char*>(memory);
}

Region region(char* base, std::size_t bytes) { return {base, bytes, &kPlainByte}; }
Blocks blocks(char* base, std::size_t bytes) { return {base, &kPlainByte, bytes}; }

}  // namespace

Buffers::Buffers(std::size_t bytes, int ranks) : sent(pages(bytes * ranks)), received(pages(bytes * ranks)) {
  for (int r = 0; r <= ranks; ++r) begins.push_back(bytes * r);
}
Buffers::~Buffers() {
  std::free(sent);
  std::free(received);
}

std::vector<std::string> collectives() {
  return {"barrier", "bcast",   "reduce",    "allreduce", "scan", "reduce_scatter_block",
          "gather",  "scatter", "allgather", "alltoall"};
}

bool is_barrier(const std::string& collective) { return collective == "barrier"; }

RankCall call_of(const std::string& collective, engine::Comm& comm, Buffers& b, std::size_t bytes) {
  const Region sent = region(b.sent, bytes), received = region(b.received, bytes);
  const Blocks all_sent = blocks(b.sent, bytes), all_received = blocks(b.received, bytes);
  const engine::KernelArgs vector{b.sent, b.received, bytes, true};
  const engine::KernelOp sum{&add_doubles, sizeof(double)};
  if (is_barrier(collective)) return [&comm] { engine::barrier(comm); };
  if (collective == "bcast") return [&comm, sent] { engine::bcast(comm, sent, kRoot, true); };
  if (collective == "reduce") return [&comm, vector, sum] { engine::reduce(comm, vector, sum, kRoot); };
  if (collective == "allreduce") return [&comm, vector, sum] { engine::allreduce(comm, vector, sum); };
  if (collective == "scan") return [&comm, vector, sum] { engine::scan(comm, vector, sum, false); };
  if (collective == "reduce_scatter_block") {
    engine::KernelArgs whole = vector;
    whole.bytes = bytes * engine::comm_size(comm);
    return [&comm, whole, sum, begins = b.begins.data()] {
      engine::reduce_scatter(comm, Collective::reduce_scatter_block, whole, sum, begins);
    };
  }
  if (collective == "gather") {
    return [&comm, sent, all_received] {
      engine::gather(comm, Collective::gather, sent, all_received, kRoot, false, true);
    };
  }
  if (collective == "scatter") {
    return [&comm, all_sent, received] {
      engine::scatter(comm, Collective::scatter, all_sent, received, kRoot, false, true);
    };
  }
  if (collective == "allgather") {
    return [&comm, sent, all_received] {
      engine::allgather(comm, Collective::allgather, sent, all_received, false, true);
    };
  }
  if (collective == "alltoall") {
    return [&comm, all_sent, all_received] {
      engine::alltoall(comm, Collective::alltoall, all_sent, all_received, false, true);
    };
  }
  return nullptr;
}

bool is_ours(const std::string& way) { return way == kOurs || way.starts_with(coll_shm::kPrefix); }

std::string choose(const std::string& collective, const std::string& way, engine::Comm& comm) {
  if (way == kOurs) return "";
  const std::string text = collective + ": " + way;
  select::Rules rules;
  select::ShmRules named;
  FileError error;
  if (!rules.parse(text.data(), text.size(), &error)) return text + ": " + error.what;
  if (!named.start(rules, engine::comm_size(comm), 1)) std::abort();
  engine::comm_obey(comm, std::move(named));
  return "";
}

// As rules count them: all parts together, where ranks have parts.
static std::size_t bytes_of_call(Collective called, std::size_t bytes, const engine::Comm& comm) {
  switch (called) {
    case Collective::reduce_scatter_block:
    case Collective::gather:
    case Collective::scatter:
    case Collective::allgather:
    case Collective::alltoall: return bytes * static_cast<std::size_t>(engine::comm_size(comm));
    default: return bytes;
  }
}

std::string way_of(const std::string& collective, std::size_t bytes, const std::string& way, const engine::Comm& comm) {
  const Collective called = collective_named(collective.c_str());
  const coll_shm::TeamTraits members = engine::comm_members(comm);
  const coll_shm::Algorithm* serves = &coll_shm::algorithm_of(called, bytes_of_call(called, bytes, comm), members);
  if (way != kOurs) {
    const coll_shm::Algorithm* const named =
        coll_shm::find_algorithm(called, way.c_str() + std::strlen(coll_shm::kPrefix));
    const auto usual = [&](const coll_shm::TeamTraits&) { return serves->path; };
    if (coll_shm::path_of(named, members, usual) == named->path) serves = named;
  }
  return std::string(coll_shm::kPrefix) + serves->name;
}

}  // namespace stretto::node
