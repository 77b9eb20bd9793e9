// SPDX-License-Identifier: BSD-3-Clause
#include "engine/onlooker.hpp"

#include "sys/sys.hpp"

namespace stretto::engine {

Attached Onlooker::attach(int fd) {
  detach();
  const std::size_t bytes = sys::memory_file_bytes(fd);
  void* address = nullptr;
  const int error =
      bytes < shm::Segment::kLanesOffset ? 0 : sys::map_shared(fd, bytes, sys::Access::read_only, &address);
  sys::close_descriptor(fd);
  if (!address) return error == 0 ? Attached::other_file : Attached::no_memory;
  const Attached found = look_at(static_cast<const char*>(address), bytes);
  mapped_ = true;
  if (found != Attached::ok) detach();
  return found;
}

Attached Onlooker::look_at(const char* base, std::size_t bytes) {
  base_ = base;
  bytes_ = bytes;
  if (header().magic != shm::kSegmentMagic) return Attached::other_file;
  if (header().layout_version != shm::kLayoutVersion) return Attached::other_layout;
  const std::uint64_t table = ledger().pulse.table.load_acquire();  // pairs with presence_put
  presence_ = {};
  return table != 0 && presence_read({base_, backed_bytes(), table}, &presence_) ? Attached::ok : Attached::other_file;
}

void Onlooker::detach() {
  if (mapped_) sys::unmap(const_cast<char*>(base_), bytes_);
  base_ = nullptr;
  mapped_ = false;
}

std::uint64_t Onlooker::backed_bytes() const {
  const std::uint64_t backed = ledger().pulse.backed_bytes.load_acquire();
  return backed < bytes_ ? backed : bytes_;
}

bool Onlooker::latest(shm::NoteCopy* note) const {
  const auto* notes = reinterpret_cast<const shm::Note*>(base_ + shm::Segment::kNotesOffset);
  const std::uint64_t number = ledger().pulse.calls.load_relaxed();
  return number != 0 && note_read(notes[number % shm::kNotes], note) && note->number >= number;
}

// The line at *at; then *at is the next one's. A line that leaves the chain meanwhile still names the one after it; in
// a block that was given to another communicator, it begins with that one's generation, or none.
bool Onlooker::read(std::uint64_t* at, Membership* membership) const {
  const std::uint64_t most = backed_bytes();
  if (*at == 0 || *at % shm::kLineBytes != 0 || *at > most || most - *at < sizeof(shm::Standing)) return false;
  const auto& line = *reinterpret_cast<const shm::Standing*>(base_ + *at);
  const std::uint64_t call = line.call.load_acquire();
  const std::uint64_t seat = line.seat.load_acquire();
  *at = line.next.load_acquire();
  const std::uint64_t begun = call >> 8;
  const bool ended = (call & shm::Standing::kEnded) != 0 || begun == 0;
  *membership = {line.generation.load_acquire(), static_cast<std::uint32_t>(seat >> 32),
                 static_cast<std::uint32_t>(seat), begun, ended ? begun : begun - 1};
  return true;
}

}  // namespace stretto::engine
