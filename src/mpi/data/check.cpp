// SPDX-License-Identifier: BSD-3-Clause
#include "mpi/data/check.hpp"

#include <cstdlib>
#include <new>

#include "base/log.hpp"
#include "mpi/data/datatype.hpp"

namespace stretto::mpi {
namespace {

void pack(const Snapshot& snapshot, char* target) {
  for (int r = 0; r < snapshot.ranks; ++r) {
    const Region region = snapshot.blocks.at(r);
    Stream(region).pack(target, region.bytes());
    target += region.bytes();
  }
}

void unpack(const Snapshot& snapshot, const char* source) {
  for (int r = 0; r < snapshot.ranks; ++r) {
    const Region region = snapshot.blocks.at(r);
    Stream(region).unpack(source, region.bytes());
    source += region.bytes();
  }
}

void discard(Call& call) {
  Snapshot* const snapshot = call.snapshot;
  call.snapshot = nullptr;
  if (snapshot->layouts == nullptr) layout_release(snapshot->blocks.layout);
  for (int r = 0; snapshot->layouts != nullptr && r < snapshot->ranks; ++r) {
    if (snapshot->layouts[r]->size != 0) layout_release(snapshot->layouts[r]);
  }
  std::free(snapshot->layouts);
  std::free(snapshot->arrays);
  std::free(snapshot->before);
  std::free(snapshot->ours);
  std::free(snapshot);
}

// Saves the data that the call may change.
void save(Snapshot& snapshot) {
  for (int r = 0; r < snapshot.ranks; ++r) snapshot.bytes += snapshot.blocks.at(r).bytes();
  snapshot.before = static_cast<char*>(std::malloc(snapshot.bytes + 1));
  snapshot.ours = static_cast<char*>(std::malloc(snapshot.bytes + 1));
  if (snapshot.before != nullptr && snapshot.ours != nullptr) return pack(snapshot, snapshot.before);
  snapshot.bytes = 0;
  snapshot.lost = true;
}

[[noreturn]] void differ(const Call& call, std::uint64_t at, unsigned ours, unsigned theirs) {
  const State& state = *call.state;
  const Counter& counter = state.counters.of[static_cast<int>(call.collective())];
  std::uint64_t calls = 0;
  for (const std::uint64_t n : counter.calls) calls += n;
  log_line(
      LogLevel::error,
      "STRETTO_CHECK: %s differs from the MPI's own: rank %d of communicator %llu (%d ranks), call %llu, byte %llu of "
      "the received data: ours 0x%02x, the MPI's 0x%02x",
      kEntryFacts[static_cast<int>(call.entry)].name, state.rank, static_cast<unsigned long long>(state.serial),
      state.size, static_cast<unsigned long long>(calls), static_cast<unsigned long long>(at), ours, theirs);
  log_drain();
  host().Abort(state.handle, 1);
  log_end_process();
}

void compare(const Call& call, const Snapshot& snapshot) {
  const auto differ_at = [&](std::uint64_t i) {
    differ(call, i, static_cast<unsigned char>(snapshot.ours[i]), static_cast<unsigned char>(snapshot.before[i]));
  };
  if (snapshot.compare == Snapshot::Compare::nothing) return;
  if (snapshot.compare == Snapshot::Compare::numbers) {
    for (std::uint64_t i = 0; i < numbers_in(snapshot); ++i) {
      if (numbers_differ(snapshot, i)) differ_at(i * number_bytes(snapshot));
    }
    return;
  }
  for (std::uint64_t i = 0; i < snapshot.bytes; ++i) {
    if (snapshot.ours[i] != snapshot.before[i]) differ_at(i);
  }
}

}  // namespace

void check_begin(Call& call, const Blocks& blocks, int ranks, MPI_Datatype type, bool staged) {
  auto* const memory = std::malloc(sizeof(Snapshot));
  if (memory == nullptr) std::abort();  // the other ranks will run the host's function, too, so this rank must
  call.snapshot = new (memory) Snapshot{blocks, ranks, type};
  call.snapshot->lost = staged;
  if (ranks == 0 || staged) {
    call.snapshot->blocks = {};
    call.snapshot->ranks = 0;
    return;
  }
  // The comparison comes after the call has released the layout, so the snapshot holds it, too.
  call.snapshot->blocks.layout = layout_acquire(type);
  save(*call.snapshot);
}

// The layouts of blocks without data are not held.
void check_begin(Call& call, const Blocks& blocks, int ranks, const MPI_Datatype* types, bool staged) {
  const auto count = static_cast<std::size_t>(ranks);
  const bool some = ranks != 0 && !staged;
  auto** const layouts = some ? static_cast<const Layout**>(std::malloc(count * sizeof(Layout*))) : nullptr;
  auto* const arrays = some ? static_cast<std::int64_t*>(std::malloc(2 * count * sizeof(std::int64_t))) : nullptr;
  if (layouts == nullptr || arrays == nullptr) {
    std::free(layouts);
    std::free(arrays);
    return check_begin(call, {}, 0, host().constants.datatype_null, ranks != 0);
  }
  auto* const memory = std::malloc(sizeof(Snapshot));
  if (memory == nullptr) std::abort();  // the other ranks check these buffers, so this rank must
  call.snapshot = new (memory) Snapshot{blocks, ranks};
  for (int r = 0; r < ranks; ++r) {
    layouts[r] = blocks.layouts[r];
    if (layouts[r]->size != 0) layouts[r] = layout_acquire(types[r]);
    const Region region = blocks.at(r);
    arrays[r] = static_cast<std::int64_t>(region.count);
    arrays[count + static_cast<std::size_t>(r)] = static_cast<std::int64_t>(
        reinterpret_cast<std::uintptr_t>(region.base) - reinterpret_cast<std::uintptr_t>(blocks.base));
  }
  call.snapshot->layouts = layouts;
  call.snapshot->arrays = arrays;
  call.snapshot->blocks.layouts = layouts;
  call.snapshot->blocks.counts = arrays;
  call.snapshot->blocks.displs = arrays + ranks;
  call.snapshot->blocks.wide = true;
  save(*call.snapshot);
}

void check_cancel(Call& call) { discard(call); }

bool check_turn(Call& call) {
  const Inside inside;
  int mine = call.code == MPI_SUCCESS && !call.snapshot->lost, all = 0;
  const Constants& c = host().constants;
  if (host().Allreduce(&mine, &all, 1, c.int_, c.min, call.state->handle) != MPI_SUCCESS || !all) {
    discard(call);
    return false;
  }
  const Snapshot& snapshot = *call.snapshot;
  pack(snapshot, snapshot.ours);
  unpack(snapshot, snapshot.before);
  return true;
}

int check_end(Call& call, int code) {
  const Snapshot& snapshot = *call.snapshot;
  if (code == MPI_SUCCESS) {
    pack(snapshot, snapshot.before);  // from here on the host's result
    compare(call, snapshot);
  }
  discard(call);
  return code;
}

}  // namespace stretto::mpi
