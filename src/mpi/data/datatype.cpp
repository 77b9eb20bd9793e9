// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/data/datatype.hpp"

#include <pthread.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <new>

#include "mpi/data/flatten.hpp"
#include "mpi/host/host.hpp"
#include "mpi/host/trial.hpp"

namespace stretto::mpi {
namespace {

// A layout and its runs, which follow it in the same allocation. The type that holds the entry as
// an attribute counts as one reference, and so does every call that works with the layout. An entry
// of a predefined type stays for good. `uses` is about the number of calls so far.
struct Entry {
  Layout layout;
  bool predefined;
  std::atomic<std::uint32_t> references;
  std::atomic<std::uint32_t> uses;

  Run* runs() { return reinterpret_cast<Run*>(this + 1); }
};
static_assert(sizeof(Entry) % alignof(Run) == 0);

Entry* entry_of(const Layout* layout) { return reinterpret_cast<Entry*>(const_cast<Layout*>(layout)); }

constinit std::atomic<bool> g_concurrent{false};
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;  // for flattening and for changes of the keyval
constinit std::atomic<int> g_keyval{MPI_KEYVAL_INVALID};
// Advances whenever a type that has a layout is freed. It starts at 1, because the empty
// memory of a thread says 0.
constinit std::atomic<std::uint64_t> g_epoch{1};

struct Locked {
  Locked() { pthread_mutex_lock(&g_lock); }
  ~Locked() { pthread_mutex_unlock(&g_lock); }
  Locked(const Locked&) = delete;
  Locked& operator=(const Locked&) = delete;
};

// ---- References ----

void add_reference(Entry* entry) {
  if (entry->predefined) return;
  // Two threads may lose a count here, which does no harm.
  entry->uses.store(entry->uses.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  if (g_concurrent.load(std::memory_order_relaxed)) {
    entry->references.fetch_add(1, std::memory_order_relaxed);
  } else {
    entry->references.store(entry->references.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
  }
}

void drop_reference(Entry* entry) {
  if (entry->predefined) return;
  std::uint32_t before;
  if (g_concurrent.load(std::memory_order_relaxed)) {
    // The release pairs with the acquire in the thread that drops the last reference. So that
    // thread frees the entry after every use.
    before = entry->references.fetch_sub(1, std::memory_order_acq_rel);
  } else {
    before = entry->references.load(std::memory_order_relaxed);
    entry->references.store(before - 1, std::memory_order_relaxed);
  }
  if (before == 1) std::free(entry);
}

// ---- Predefined types: a table that only grows ----

struct Predefined {
  std::atomic<MPI_Datatype> type;  // written after `entry`
  Entry* entry;
};
constexpr std::size_t kPredefinedSlots = 256;  // the standard names fewer than 100
constinit Predefined g_predefined[kPredefinedSlots] = {};

Entry* find_predefined(MPI_Datatype type) {
  const std::size_t start = vendor::handle_hash(type);
  for (std::size_t i = 0; i < kPredefinedSlots; ++i) {
    const Predefined& slot = g_predefined[(start + i) % kPredefinedSlots];
    const MPI_Datatype there = slot.type.load(std::memory_order_acquire);  // pairs with keep_predefined
    if (there == type) return slot.entry;
    if (there == MPI_Datatype{}) return nullptr;
  }
  return nullptr;
}

// The caller holds g_lock. Returns false when the table is full.
bool keep_predefined(MPI_Datatype type, Entry* entry) {
  const std::size_t start = vendor::handle_hash(type);
  for (std::size_t i = 0; i < kPredefinedSlots; ++i) {
    Predefined& slot = g_predefined[(start + i) % kPredefinedSlots];
    if (slot.type.load(std::memory_order_relaxed) != MPI_Datatype{}) continue;
    slot.entry = entry;
    slot.type.store(type, std::memory_order_release);
    return true;
  }
  return false;
}

// ---- Attributes: who gets one ----

// Some programs make a type for every call. An attribute then costs more than the call itself. The
// host soon uses the handle of a freed type again. If the types of a handle are freed after few
// uses, the next types with this handle get no attribute at first. They get one after Stretto has
// seen them some times. Until then their layout is freed with the call. Handles of one slot share
// these numbers, and threads may lose a count. Both only make calls slower.
struct Patience {
  std::atomic<std::uint32_t> wanted;  // sightings without an attribute before one is made
  std::atomic<std::uint32_t> seen;
};
constexpr std::size_t kPatienceSlots = 256;
constexpr std::uint32_t kMostPatience = 63;
constexpr std::uint32_t kFewUses = 4;
constexpr std::size_t kFewRuns = 64;  // a walk of more runs takes longer than the making of an attribute
constinit Patience g_patience[kPatienceSlots] = {};

// Without MPI_Init there are no attributes (communicator.cpp says why).
bool worth_an_attribute(MPI_Datatype type, const Entry* entry) {
  int initialized = 0;
  if (host().Initialized(&initialized) != MPI_SUCCESS || !initialized) return false;
  Patience& patience = g_patience[vendor::handle_hash(type) % kPatienceSlots];
  const std::uint32_t seen = patience.seen.load(std::memory_order_relaxed);
  const bool worth = entry->layout.run_count > kFewRuns || layout_is_opaque(entry->layout) ||
                     seen >= patience.wanted.load(std::memory_order_relaxed);
  patience.seen.store(worth ? 0 : seen + 1, std::memory_order_relaxed);
  return worth;
}

void learn_patience(MPI_Datatype type, const Entry* entry) {
  std::atomic<std::uint32_t>& wanted = g_patience[vendor::handle_hash(type) % kPatienceSlots].wanted;
  const bool few = entry->uses.load(std::memory_order_relaxed) <= kFewUses;
  wanted.store(few ? std::min(2 * wanted.load(std::memory_order_relaxed) + 1, kMostPatience) : 0,
               std::memory_order_relaxed);
}

int on_type_copy(MPI_Datatype, int, void*, void*, void*, int* flag) {
  *flag = 0;  // a duplicate is flattened when it is used
  return MPI_SUCCESS;
}

int on_type_delete(MPI_Datatype type, int, void* attribute, void*) {
  learn_patience(type, static_cast<Entry*>(attribute));
  g_epoch.fetch_add(1, std::memory_order_release);  // pairs with remembered(): a new type may get the handle
  drop_reference(static_cast<Entry*>(attribute));
  return MPI_SUCCESS;
}

// ---- What a thread used last ----

struct Memory {
  MPI_Datatype type;
  Entry* entry;
  std::uint64_t epoch;
};
constexpr std::size_t kMemories = 4;  // a call has at most two types
[[gnu::tls_model("initial-exec")]] constinit thread_local Memory t_memory[kMemories] = {};

Memory& memory_of(MPI_Datatype type) { return t_memory[vendor::handle_hash(type) % kMemories]; }

Entry* remembered(MPI_Datatype type) {
  const Memory& memory = memory_of(type);
  if (memory.type != type || memory.epoch != g_epoch.load(std::memory_order_acquire)) return nullptr;
  return memory.entry;
}

// ---- Making entries ----

// A program may not send data of a type that is not committed. MPI has no function that tells
// whether a type is committed. So Stretto lets the host pack no elements of the type: the host's
// own checks refuse a type that is not committed. Without MPI_Init there is no communicator to ask
// on, and the type counts as committed.
bool is_committed(MPI_Datatype type) {
  const MPI_Comm comm = trial_comm();
  if (comm == host().constants.comm_null) return true;
  char nothing = 0;
  int position = 0;
  return host().Pack(&nothing, 0, type, &nothing, sizeof nothing, &position, comm) == MPI_SUCCESS;
}

// The most runs of a layout. The host packs types of more runs, piece by piece. It can do so only
// if one element fits the counts of its MPI_Pack. If it does not fit, there is no limit.
std::size_t run_limit(MPI_Count size) {
#if STRETTO_LARGE_COUNT
  if (host().Pack_c && host().Unpack_c) return kRunLimit;
#endif
  return size <= INT_MAX ? kRunLimit : ~std::size_t{0};
}

std::size_t common_width(const RunList& runs) {
  for (std::size_t i = 1; i < runs.count(); ++i) {
    if (runs.data()[i].bytes != runs.data()[0].bytes) return 0;
  }
  return runs.count() == 0 ? 0 : runs.data()[0].bytes;
}

Entry* make_entry(MPI_Datatype type) {
  MPI_Count size = 0;
  MPI_Count lower = 0;
  MPI_Count extent = 0;
  if (host().Type_size_x(type, &size) != MPI_SUCCESS || size < 0) return nullptr;
  if (host().Type_get_extent_x(type, &lower, &extent) != MPI_SUCCESS) return nullptr;
  RunList runs(run_limit(size));
  bool predefined = false;
  const Flattened how = flatten(type, runs, &predefined);
  if (how == Flattened::invalid || !(predefined || is_committed(type))) return nullptr;
  const std::size_t count = how == Flattened::ok ? runs.count() : 0;
  void* memory = std::malloc(sizeof(Entry) + count * sizeof(Run));
  if (!memory) return nullptr;
  Entry* entry = new (memory) Entry{{}, predefined, {1}, {0}};
  if (count != 0) std::memcpy(entry->runs(), runs.data(), count * sizeof(Run));
  entry->layout = {static_cast<std::size_t>(size),
                   extent,
                   entry->runs(),
                   count,
                   count == 1 && entry->runs()[0].bytes == static_cast<std::size_t>(extent),
                   count == 0 ? 0 : common_width(runs),
                   count == 0 ? Signature{} : runs.signature()};
  return entry;
}

bool keyval_ready() {
  if (g_keyval.load(std::memory_order_relaxed) != MPI_KEYVAL_INVALID) return true;
  int keyval = MPI_KEYVAL_INVALID;
  if (host().Type_create_keyval(on_type_copy, on_type_delete, &keyval, nullptr) != MPI_SUCCESS) return false;
  g_keyval.store(keyval, std::memory_order_release);
  return true;
}

Entry* attached(MPI_Datatype type) {
  const int keyval = g_keyval.load(std::memory_order_acquire);
  if (keyval == MPI_KEYVAL_INVALID) return nullptr;
  void* attribute = nullptr;
  int found = 0;
  if (host().Type_get_attr(type, keyval, &attribute, &found) != MPI_SUCCESS || !found) return nullptr;
  return static_cast<Entry*>(attribute);
}

// Makes the entry of a type that is new, unless another thread has made it meanwhile. If `*kept`
// becomes false, the entry has one reference, which belongs to the caller.
Entry* learn(MPI_Datatype type, bool* kept) {
  const Locked locked;
  if (Entry* entry = find_predefined(type)) return entry;
  if (Entry* entry = attached(type)) return entry;
  Entry* entry = make_entry(type);
  if (!entry) return nullptr;
  if (entry->predefined && keep_predefined(type, entry)) return entry;
  entry->predefined = false;
  *kept = worth_an_attribute(type, entry);
  if (!*kept) return entry;
  if (keyval_ready() && host().Type_set_attr(type, g_keyval.load(std::memory_order_relaxed), entry) == MPI_SUCCESS)
    return entry;
  std::free(entry);
  return nullptr;
}

}  // namespace

void datatypes_start(bool concurrent) { g_concurrent.store(concurrent, std::memory_order_relaxed); }

void datatypes_stop() {
  const Locked locked;
  int keyval = g_keyval.exchange(MPI_KEYVAL_INVALID, std::memory_order_acq_rel);
  g_epoch.fetch_add(1, std::memory_order_release);
  if (keyval != MPI_KEYVAL_INVALID) host().Type_free_keyval(&keyval);
}

[[gnu::tls_model("initial-exec")]] thread_local constinit PlainType t_plain_type = {};

const Layout* layout_acquire(MPI_Datatype type) {
  if (Entry* entry = find_predefined(type)) {
    if (entry->layout.contiguous && entry->layout.run_count == 1) t_plain_type = {type, &entry->layout};
    return &entry->layout;
  }
  Entry* entry = remembered(type);
  if (!entry) {
    if (!vendor::is_datatype(type, host().constants.datatype_null)) return nullptr;
    // Read before the entry is looked up, so that a later deletion shows.
    const std::uint64_t epoch = g_epoch.load(std::memory_order_acquire);
    entry = attached(type);
    bool kept = true;
    if (!entry) entry = learn(type, &kept);
    if (!entry) return nullptr;
    if (!kept) return &entry->layout;
    if (!entry->predefined) memory_of(type) = {type, entry, epoch};
  }
  add_reference(entry);
  return &entry->layout;
}

void layout_release(const Layout* layout) {
  if (layout) drop_reference(entry_of(layout));
}

}  // namespace stretto::mpi
