// SPDX-License-Identifier: BSD-3-Clause
#include "engine/stack_watch.hpp"

#include <cstdio>
#include <cstring>

#include "base/log.hpp"
#include "engine/host_call_watch.hpp"
#include "engine/process.hpp"
#include "observe/stacks.hpp"
#include "sys/stopped_threads.hpp"

namespace stretto::engine {
namespace {

using observe::Stand;

std::uint64_t calls_of(const Stand& stand) {
  return shm::Segment::ledger_beside(stand.notes()).activity.calls.load_relaxed() +
         shm::Segment::host_calls_beside(stand.notes()).calls.load_relaxed();
}

bool is_in_program(const Stand& stand) { return stand.runs() && !stand.call.open && !stand.in_collective(); }

// One line of the log has about a thousand bytes. Of a program in Python it has the frames of
// Python.
void tell_stack(const Stand& stand, const shm::StackText& stack) {
  constexpr std::size_t kMostBytes = 880;
  if (stack.text[0] == '!') {
    log_line(LogLevel::warn, "watchdog: rank %d (process %d): its stack cannot be read: %s", stand.rank, stand.pid,
             stack.text + 1);
    return;
  }
  char text[kMostBytes] = "";
  std::size_t length = 0;
  const auto is_place = [](const char* frame, std::size_t bytes) { return memmem(frame, bytes, "+0x", 3) != nullptr; };
  const bool has_python = !is_place(stack.text, std::strcspn(stack.text, "\n"));
  for (const char* frame = stack.text; *frame != 0;) {
    const std::size_t bytes = std::strcspn(frame, "\n");
    if (has_python && is_place(frame, bytes)) break;
    const std::size_t room = sizeof text - length;
    const int more =
        std::snprintf(text + length, room, "%s%.*s", length == 0 ? "" : "; called at ", static_cast<int>(bytes), frame);
    if (more < 0 || static_cast<std::size_t>(more) >= room) {
      text[length] = 0;
      break;
    }
    length += static_cast<std::size_t>(more);
    frame += bytes + (frame[bytes] != 0 ? 1 : 0);
  }
  log_line(LogLevel::warn, "watchdog: rank %d (process %d) is at %s", stand.rank, stand.pid, text);
}

}  // namespace

void StackWatch::start() { thread_ = sys::thread_id(); }

void StackWatch::look(Process& process, bool stuck) {
  if (!has_segment(process)) return;
  process.segment.stack().wanted.store_release(stuck ? 1 : 0);
  if (stuck) return tell(process);
  told_.resize(0, {});
  bool wanted = false;
  each_peer(process, [&](const shm::Attachment& peer) {
    const auto& note = *reinterpret_cast<const shm::StackNote*>(peer.base + shm::Segment::kStackOffset);
    wanted = wanted || note.wanted.load_acquire() != 0;
  });
  if (wanted) publish(process);
}

void StackWatch::publish(Process& process) {
  observe::Standing self;
  if (!self.add(process.segment.base(), process.segment.bytes(), false)) return;
  const Stand& own = *self.begin();
  const std::uint64_t calls = calls_of(own);
  if (!is_in_program(own) || calls == published_) return;
  published_ = calls;
  shm::StackText stack;
  observe::stack_of(sys::process_id(), thread_, true, &stack);
  stack.calls = calls;
  process.segment.stack().write(stack);
}

// The lowest rank that is stuck speaks for this machine.
void StackWatch::tell(Process& process) {
  const observe::Standing standing = standing_of(process);
  for (const Stand& stand : standing) {
    if (stand.waits() || stand.in_collective()) {
      if (stand.rank < static_cast<int>(process.settings.job_rank)) return;
      break;
    }
  }
  for (const Stand& stand : standing) {
    shm::StackText stack;
    const auto& note = *reinterpret_cast<const shm::StackNote*>(stand.base + shm::Segment::kStackOffset);
    if (!is_in_program(stand) || !note.read(&stack) || stack.calls != calls_of(stand)) continue;
    bool is_told = false;
    for (const Told& each : told_) is_told = is_told || (each.rank == stand.rank && each.calls == stack.calls);
    if (is_told) continue;
    if (told_.push({stand.rank, stack.calls})) tell_stack(stand, stack);
  }
}

}  // namespace stretto::engine
