// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/record/recorded.hpp"

#include <atomic>
#include <cstring>

#include "base/log.hpp"
#include "mpi/job/world.hpp"
#include "mpi/job/world_ranks.hpp"
#include "mpi/record/recorder.hpp"
#include "mpi/state/state.hpp"
#include "mpi/vendor/vendor.hpp"
#include "sys/sys.hpp"

namespace stretto::mpi {
namespace {

using record::peer_word;
using record::PeerKind;

constexpr double kHadProcessor = 0.95;

struct RecordedThread {
  std::uint64_t left;          // counter at the end of the newest call; 0: no call yet
  std::uint64_t processor_ns;  // of the thread then; 0: not asked
  std::uint32_t number;        // from 1 on
  std::uint32_t last_term;     // of the newest call, plus 1; 0: none
  bool inside;
};
thread_local constinit RecordedThread t_recorded STRETTO_TLS = {};
// By term: the gap behind it was long last time.
constinit bool g_long_behind[1024] = {};
bool& long_behind(std::uint32_t term) { return g_long_behind[term % std::size(g_long_behind)]; }

class RecorderLock {
 public:
  RecorderLock() {
    if (g_recorder->threaded) pthread_mutex_lock(&g_recorder->lock);
  }
  ~RecorderLock() {
    if (g_recorder->threaded) pthread_mutex_unlock(&g_recorder->lock);
  }
  RecorderLock(const RecorderLock&) = delete;
  RecorderLock& operator=(const RecorderLock&) = delete;
};

std::int64_t peer(int rank, int mine) {
  if (rank == MPI_ANY_SOURCE) return peer_word(PeerKind::any);
  return rank < 0 ? peer_word(PeerKind::none) : peer_word(PeerKind::rank, rank - mine);
}

std::int64_t size_of(Handle type) {
  MPI_Count bytes = 0;
  const auto datatype = (MPI_Datatype)type;
  if (!vendor::is_datatype(datatype, host().constants.datatype_null)) return 0;
  return host().Type_size_x(datatype, &bytes) == MPI_SUCCESS && bytes > 0 ? bytes : 0;
}

std::int64_t entry_of(CountArray counts, std::size_t i) {
  return counts.wide ? static_cast<const std::int64_t*>(counts.data)[i] : static_cast<const int*>(counts.data)[i];
}

// A program with sessions alone makes a call.
void record_without_world() {
  static constinit std::atomic<bool> said{false};
  if (vendor::launcher_rank() > 0 || said.exchange(true, std::memory_order_relaxed)) return;
  log_line(LogLevel::warn, "STRETTO_RECORD: calls before MPI_Init are not recorded, nor programs with sessions alone");
}

// A handle in an array, or behind a pointer.
template <class T>
std::uintptr_t handle_at(const void* array, int i = 0) {
  return (std::uintptr_t)static_cast<const T*>(array)[i];
}

}  // namespace

Recorded::Recorded(Entry entry, const void* caller) : entry_(entry) {
  if (t_thread.depth != 0 || t_recorded.inside || is_inside_host(caller)) return;
  if (g_recorder == nullptr) {
    if (g_recorded) record_without_world();
    return;
  }
  began_ = entered_ = sys::counter();
  if (t_recorded.processor_ns != 0) {
    processor_ns_ = sys::thread_processor_ns() - t_recorded.processor_ns;
    began_ = sys::counter();
  }
  on_ = true;
  t_recorded.inside = true;
  const RecorderLock locked;
  if (t_recorded.number == 0) t_recorded.number = g_recorder->thread() + 1;
  word(Role::function, g_recorder->function(static_cast<int>(entry)));
  word(Role::place, g_recorder->place(reinterpret_cast<std::uintptr_t>(caller)));
  if (t_recorded.number != 1) word(Role::thread, t_recorded.number - 1);
}

bool Recorded::grow(std::size_t values) {
  const std::size_t capacity = 2 * capacity_ + values;
  void* const more = std::realloc(words_ == few_ ? nullptr : words_, capacity * sizeof *words_);
  if (more == nullptr) return false;
  if (words_ == few_) std::memcpy(more, few_, size_ * sizeof *words_);
  words_ = static_cast<std::int64_t*>(more);
  capacity_ = capacity;
  return true;
}

// ---- Before the call ----

void Recorded::comm(Handle handle) {
  const auto comm = as<MPI_Comm>(handle);
  if (comm == MPI_Comm{} || comm == host().constants.comm_null) return;
  const RecorderLock locked;
  comm_ = g_recorder->comm(comm);
  word(Role::comm, comm_);
}

void Recorded::sends(int target, int tag, std::int64_t count, Handle type) {
  const RecorderLock locked;
  word(Role::destination, peer(target, g_recorder->comm_facts[comm_].rank));
  word(Role::send_tag, tag);
  data(Role::sends, nullptr, count, type);
}

void Recorded::receives(int source, int tag, std::int64_t count, Handle type) {
  const RecorderLock locked;
  word(Role::source, peer(source, g_recorder->comm_facts[comm_].rank));
  word(Role::receive_tag, tag == MPI_ANY_TAG ? record::kAnyTag : tag);
  if (count >= 0) data(Role::receives, nullptr, count, type);
  wild_ = source == MPI_ANY_SOURCE || tag == MPI_ANY_TAG;
}

void Recorded::data(Role role, const void* buffer, std::int64_t count, Handle type) {
  if (buffer == MPI_IN_PLACE) return word(Role::in_place, 1);
  word(role, count > 0 ? count * size_of(type) : 0);
}
void Recorded::sends_data(const void* buffer, std::int64_t count, Handle type) {
  data(Role::sends, buffer, count, type);
}
void Recorded::receives_data(const void* buffer, std::int64_t count, Handle type) {
  data(Role::receives, buffer, count, type);
}

// `types` has a type for each block, or is null.
void Recorded::blocks(Role role, const void* buffer, CountArray counts, Handle type, const void* types) {
  if (buffer == MPI_IN_PLACE) return word(Role::in_place, 1);
  if (counts.data == nullptr) return;
  const RecorderLock locked;
  const RecordedComm& comm = g_recorder->comm_facts[comm_];
  const int of_neighbors = role == Role::sends_each ? comm.destinations : comm.sources;
  const auto n = static_cast<std::size_t>(neighbors_ ? of_neighbors : comm.peers);
  const std::int64_t bytes = types == nullptr ? size_of(type) : 0;
  if (!open(role, n)) return;
  for (std::size_t i = 0; i < n; ++i) {
    const std::int64_t count = entry_of(counts, i);
    const bool typed = types != nullptr && count > 0;
    add(count * (typed ? size_of(handle_at<MPI_Datatype>(types, static_cast<int>(i))) : bytes));
  }
}
void Recorded::sends_blocks(const void* buffer, CountArray counts, Handle type) {
  blocks(Role::sends_each, buffer, counts, type, nullptr);
}
void Recorded::receives_blocks(const void* buffer, CountArray counts, Handle type) {
  blocks(Role::receives_each, buffer, counts, type, nullptr);
}
void Recorded::sends_typed(const void* buffer, CountArray counts, const void* types) {
  if (types != nullptr || buffer == MPI_IN_PLACE) blocks(Role::sends_each, buffer, counts, 0, types);
}
void Recorded::receives_typed(const void* buffer, CountArray counts, const void* types) {
  if (types != nullptr) blocks(Role::receives_each, buffer, counts, 0, types);
}

void Recorded::root(int root) {
  const RecorderLock locked;
  const RecordedComm& comm = g_recorder->comm_facts[comm_];
  at_root_ = comm.inter ? root == MPI_ROOT : root == comm.rank;
  at_leaf_ = !comm.inter || root >= 0;
  word(Role::root, root == MPI_ROOT ? record::kRootHere : root == MPI_PROC_NULL ? record::kRootNone : root);
}

void Recorded::combines(Handle op, Handle type) {
  int commutes = 1;
  if (as<MPI_Op>(op) != MPI_Op{} && as<MPI_Op>(op) != host().constants.op_null)
    host().Op_commutative(as<MPI_Op>(op), &commutes);
  if (commutes == 0) word(Role::commutes, 0);
  word(Role::element, size_of(type));
}

// A handle that is seen for the first time gets a number.
namespace {
std::uint32_t number_of(Numbers& numbers, std::uintptr_t handle) {
  const std::uint32_t number = numbers.find(handle);
  return number != Numbers::kNone ? number : numbers.add(handle);
}
void gives_up(Numbers& numbers, std::uintptr_t handle) {
  const std::uint32_t number = numbers.take(handle);
  if (number != Numbers::kNone) numbers.release(number);
}
}  // namespace

void Recorded::window(Handle window) {
  const RecorderLock locked;
  word(Role::window, number_of(g_recorder->windows, (std::uintptr_t)as<MPI_Win>(window)));
}
void Recorded::file(Handle file) {
  const RecorderLock locked;
  word(Role::file, number_of(g_recorder->files, (std::uintptr_t)as<MPI_File>(file)));
}

void Recorded::group(Handle group) {
  const Inside inside;
  Array<int> ranks;
  if (!ranks_in_world(as<MPI_Group>(group), ranks) || !open(Role::group, ranks.size())) return;
  for (const int rank : ranks) add(peer(rank == MPI_UNDEFINED ? MPI_PROC_NULL : rank, g_world.rank));
}

void Recorded::frees_window(void* handle) {
  if (handle == nullptr) return;
  window(handle_at<MPI_Win>(handle));
  const RecorderLock locked;
  gives_up(g_recorder->windows, handle_at<MPI_Win>(handle));
}
void Recorded::closes(void* handle) {
  if (handle == nullptr) return;
  file(handle_at<MPI_File>(handle));
  const RecorderLock locked;
  gives_up(g_recorder->files, handle_at<MPI_File>(handle));
}
void Recorded::frees_comm(void* handle) {
  if (handle == nullptr) return;
  comm(handle_at<MPI_Comm>(handle));
  const RecorderLock locked;
  g_recorder->comm_goes(handle_at<MPI_Comm>(handle));
}

// ---- Requests ----

void Recorded::waits(int count, void* requests) {
  if (requests == nullptr || count <= 0) return;
  const RecorderLock locked;
  if (!open(Role::waited, static_cast<std::size_t>(count))) return;
  requests_ = requests;
  count_ = count;
  first_slot_ = size_;
  for (int i = 0; i < count; ++i) {
    const auto handle = handle_at<MPI_Request>(requests, i);
    const bool is_null = (MPI_Request)handle == host().constants.request_null;
    const std::uint32_t slot = is_null ? Numbers::kNone : g_recorder->requests.take(handle);
    if (slot != Numbers::kNone) wild_ |= g_recorder->request_facts[slot].wild;
    add(slot == Numbers::kNone ? -1 : static_cast<std::int64_t>(slot));
  }
}

void Recorded::slots(Role role, int count, const void* requests) {
  if (requests == nullptr || count <= 0) return;
  const RecorderLock locked;
  if (!open(role, static_cast<std::size_t>(count))) return;
  for (int i = 0; i < count; ++i) {
    const std::uint32_t slot = g_recorder->requests.find(handle_at<MPI_Request>(requests, i));
    add(slot == Numbers::kNone ? -1 : static_cast<std::int64_t>(slot));
  }
}
void Recorded::starts(int count, const void* requests) { slots(Role::started, count, requests); }
void Recorded::names(int count, const void* requests) { slots(Role::named, count, requests); }
void Recorded::frees_request(void* request) {
  slots(Role::named, 1, request);
  if (request == nullptr) return;
  const RecorderLock locked;
  gives_up(g_recorder->requests, handle_at<MPI_Request>(request));
}
void Recorded::takes_message(void* message) {
  if (message == nullptr) return;
  const RecorderLock locked;
  const std::uint32_t slot = g_recorder->messages.take(handle_at<MPI_Message>(message));
  if (slot == Numbers::kNone) return;
  word(Role::named, slot);
  g_recorder->messages.release(slot);
}

// ---- Statuses ----

void Recorded::status(void*& status) {
  static_assert(sizeof(MPI_Status) <= sizeof own_one_);
  if (wild_ && static_cast<MPI_Status*>(status) == MPI_STATUS_IGNORE)
    status = std::memset(own_one_, 0, sizeof(MPI_Status));
  if (wild_) status_ = static_cast<MPI_Status*>(status) == MPI_STATUS_IGNORE ? nullptr : status;
}
void Recorded::statuses(void*& statuses) {
  if (wild_ && static_cast<MPI_Status*>(statuses) == MPI_STATUSES_IGNORE) {
    own_ = std::calloc(static_cast<std::size_t>(count_), sizeof(MPI_Status));
    if (own_ != nullptr) statuses = own_;
  }
  if (wild_) statuses_ = static_cast<MPI_Status*>(statuses) == MPI_STATUSES_IGNORE ? nullptr : statuses;
}

// ---- The call ----

void Recorded::end(int code) {
  const std::uint64_t ended = sys::counter();
  const RecorderLock locked;
  if (code == MPI_SUCCESS)
    results();
  else
    word(Role::code, code);
  requests_end();
  RecordedThread& thread = t_recorded;
  const std::uint64_t gap = thread.left != 0 && entered_ > thread.left ? entered_ - thread.left : 0;
  const std::uint32_t term = g_recorder->writer.term(words_, size_);
  double processor = -1;
  if (thread.processor_ns != 0) {
    const auto had = static_cast<double>(g_recorder->ticks(processor_ns_));
    if (had < kHadProcessor * static_cast<double>(gap)) processor = had;
  }
  g_recorder->writer.call(term, gap, ended - began_, processor);
  if (thread.last_term != 0) long_behind(thread.last_term) = gap > g_recorder->long_ticks();
  thread.last_term = term + 1;
  thread.processor_ns = long_behind(thread.last_term) ? sys::thread_processor_ns() : 0;
  thread.inside = false;
  thread.left = sys::counter();
}

void recorded_first() { t_recorded.left = sys::counter(); }

void recorded_last() {
  RecordedThread& thread = t_recorded;
  if (thread.left == 0) return;
  const std::int64_t words[] = {static_cast<std::int64_t>(record::Role::function), 1, kEntries};
  record::Writer& writer = g_recorder->writer;
  writer.define(record::Definition::function, kEntries, "MPI_Finalize");
  writer.call(writer.term(words, std::size(words)), sys::counter() - thread.left, 0);
}

// What the host has written, in a call that has succeeded.
void Recorded::results() {
  if (flag_ != nullptr) word(Role::flag, *flag_);
  const bool happened = flag_ == nullptr || *flag_ != 0;
  if (made_request_ != nullptr) {
    const auto handle = handle_at<MPI_Request>(made_request_);
    const std::uint32_t slot = g_recorder->requests.add(handle);
    Array<RecordedRequest>& facts = g_recorder->request_facts;
    if (slot != Numbers::kNone && (slot < facts.size() || facts.resize(slot + std::size_t{1}, {}))) {
      facts[slot] = {wild_, g_recorder->comm_facts[comm_].rank};
      word(Role::made, slot);
    }
  }
  if (made_message_ != nullptr && happened)
    word(Role::made, g_recorder->messages.add(handle_at<MPI_Message>(made_message_)));
  if (made_window_ != nullptr) word(Role::window, g_recorder->windows.add(handle_at<MPI_Win>(made_window_)));
  if (made_file_ != nullptr) word(Role::file, g_recorder->files.add(handle_at<MPI_File>(made_file_)));
  if (made_comm_ != nullptr) {
    const auto made = (MPI_Comm)handle_at<MPI_Comm>(made_comm_);
    if (made != host().constants.comm_null) word(Role::made_comm, g_recorder->comm(made));
  }
  if (status_ != nullptr && requests_ == nullptr && happened) got(0, Numbers::kNone, status_);
}

// A receive with wildcards: what came.
void Recorded::got(std::size_t position, std::uint32_t slot, const void* of) {
  const auto& status = *static_cast<const MPI_Status*>(of);
  const int mine = slot != Numbers::kNone ? g_recorder->request_facts[slot].rank : g_recorder->comm_facts[comm_].rank;
  if (!open(Role::got, 3)) return;
  add(static_cast<std::int64_t>(position));
  add(peer(status.MPI_SOURCE, mine));
  add(status.MPI_TAG);
}

// Which requests have ended. The others get their slots back, and so do persistent ones.
void Recorded::requests_end() {
  if (requests_ == nullptr) return;
  const bool none = flag_ != nullptr && *flag_ == 0;
  const auto* const statuses = static_cast<const MPI_Status*>(statuses_);
  const auto slot_at = [&](int i) { return words_[first_slot_ + static_cast<std::size_t>(i)]; };
  const auto say = [&](int i, const void* status) {
    if (slot_at(i) < 0 || status == nullptr) return;
    const auto slot = static_cast<std::uint32_t>(slot_at(i));
    if (g_recorder->request_facts[slot].wild) got(static_cast<std::size_t>(i), slot, status);
  };
  if (none) {
    // Nothing has ended.
  } else if (index_ != nullptr) {
    const int index = *index_;
    word(Role::ended, index == MPI_UNDEFINED ? -1 : index);
    if (index >= 0 && index < count_) say(index, status_);
  } else if (some_count_ != nullptr) {
    const int some = *some_count_ == MPI_UNDEFINED ? 0 : *some_count_;
    if (open(Role::ended, static_cast<std::size_t>(some))) {
      for (int i = 0; i < some; ++i) add(some_[i]);
    }
    for (int i = 0; i < some; ++i) say(some_[i], statuses == nullptr ? nullptr : &statuses[i]);
  } else {
    for (int i = 0; i < count_; ++i)
      say(i, status_ != nullptr ? status_ : statuses == nullptr ? nullptr : &statuses[i]);
  }
  for (int i = 0; i < count_; ++i) {
    if (slot_at(i) < 0) continue;
    const auto slot = static_cast<std::uint32_t>(slot_at(i));
    const auto handle = handle_at<MPI_Request>(requests_, i);
    if ((MPI_Request)handle == host().constants.request_null)
      g_recorder->requests.release(slot);
    else
      g_recorder->requests.restore(handle, slot);
  }
}

}  // namespace stretto::mpi
