// SPDX-License-Identifier: BSD-3-Clause
#include "observe/observer.hpp"

#include "sys/sys.hpp"

namespace stretto::observe {

Attached Observer::attach(int fd) {
  detach();
  const std::size_t bytes = sys::memory_file_bytes(fd);
  void* address = nullptr;
  const int error =
      bytes < shm::Segment::kLanesOffset ? 0 : sys::map_shared(fd, bytes, sys::Access::read_only, &address);
  sys::close_descriptor(fd);
  if (!address) return error == 0 ? Attached::other_file : Attached::no_memory;
  const Attached found = view(static_cast<const char*>(address), bytes);
  mapped_ = true;
  if (found != Attached::ok) detach();
  return found;
}

Attached Observer::view(const char* base, std::size_t bytes) {
  base_ = base;
  bytes_ = bytes;
  if (header().magic != shm::kSegmentMagic) return Attached::other_file;
  if (header().layout_version != shm::kLayoutVersion) return Attached::other_layout;
  const std::uint64_t table = ledger().activity.table.load_acquire();  // pairs with process_info_put
  process_info_ = {};
  return table != 0 && process_info_read({base_, blocks_end(), table}, &process_info_) ? Attached::ok
                                                                                       : Attached::other_file;
}

void Observer::detach() {
  if (mapped_) sys::unmap(const_cast<char*>(base_), bytes_);
  base_ = nullptr;
  mapped_ = false;
}

std::uint64_t Observer::blocks_end() const {
  const std::uint64_t end = ledger().activity.blocks_end.load_acquire();
  return end < bytes_ ? end : bytes_;
}

bool Observer::latest(shm::NoteCopy* note) const {
  const auto* notes = reinterpret_cast<const shm::Note*>(base_ + shm::Segment::kNotesOffset);
  const std::uint64_t number = ledger().activity.calls.load_relaxed();
  return number != 0 && note_read(notes[number % shm::kNotes], note) && note->number >= number;
}

// Reads the line at *at and sets *at to the next one's offset. A line that leaves the chain
// meanwhile still names the next one. Its block may then belong to another communicator: the line
// shows that one's generation, or none.
bool Observer::read(std::uint64_t* at, Membership* membership) const {
  const std::uint64_t most = blocks_end();
  if (*at == 0 || *at % shm::kLineBytes != 0 || *at > most || most - *at < sizeof(shm::ProgressLine)) return false;
  const auto& line = *reinterpret_cast<const shm::ProgressLine*>(base_ + *at);
  const std::uint64_t call = line.call.load_acquire();
  const std::uint64_t size_and_rank = line.size_and_rank.load_acquire();
  *at = line.next.load_acquire();
  const std::uint64_t begun = call >> 8;
  const bool ended = (call & shm::ProgressLine::kEnded) != 0 || begun == 0;
  *membership = {line.generation.load_acquire(), static_cast<std::uint32_t>(size_and_rank >> 32),
                 static_cast<std::uint32_t>(size_and_rank), begun, ended ? begun : begun - 1};
  return true;
}

}  // namespace stretto::observe
