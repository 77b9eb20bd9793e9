// SPDX-License-Identifier: BSD-3-Clause
#include "engine/attendance.hpp"

#include <algorithm>
#include <cerrno>

#include "base/tuning.hpp"

namespace stretto::engine {

// Mixes the bits by the finaliser of MurmurHash3, so that names of different jobs
// have nothing in common.
std::uint64_t Attendance::id(Kind kind, unsigned slot) const {
  std::uint64_t bits = job_ ^ (static_cast<std::uint64_t>(kind) << 56 | (slot + 1)) * 0x9e3779b97f4a7c15u;
  bits = (bits ^ bits >> 33) * 0xff51afd7ed558ccdu;
  bits = (bits ^ bits >> 33) * 0xc4ceb9fe1a85ec53u;
  return bits ^ bits >> 33;
}

// Opens all names at once. If there are no file descriptors, this fails before other ranks
// depend on this process.
bool Attendance::enter(std::uint64_t job, unsigned slot, unsigned slots) {
  job_ = job;
  slots_ = slots;
  bool fine = true;
  for (sys::Name& name : names_) fine = fine && sys::name_open(&name) == 0;
  if (fine) {
    const int error = sys::name_take(names_[kMark], id(Kind::mark, slot));
    fine = error == 0 || error == EADDRINUSE;  // the mark of a parent of this process counts for both
  }
  if (!fine) leave();
  return fine;
}

// Looks for each mark until it is there or patience ends. Marks stay, so each need
// be seen only once.
Attendance::Verdict Attendance::count(std::uint64_t patience_ns) {
  Verdict found{.all = false, .first = true, .present = 0};
  const std::uint64_t deadline = patience_ns != 0 ? sys::now_ns() + patience_ns : 0;
  for (unsigned slot = 0; slot < slots_; ++slot) {
    bool here = sys::name_taken(names_[kAsking], id(Kind::mark, slot));
    while (!here && patience_ns != 0 && sys::now_ns() < deadline) {
      sys::nap_ns(kTuning.attendance_longest_pause_ns);
      here = sys::name_taken(names_[kAsking], id(Kind::mark, slot));
    }
    found.present += here ? 1 : 0;
  }
  found.all = found.present == slots_;
  return found;
}

Attendance::Verdict Attendance::verdict(std::uint64_t patience_ns) {
  if (known_) return {.all = all_};
  const Verdict found = names_[kAsking].socket >= 0 ? decide(patience_ns) : Verdict{};
  known_ = true;
  all_ = found.all;
  return found;
}

Attendance::Verdict Attendance::decide(std::uint64_t patience_ns) {
  for (std::uint64_t pause_ns = kTuning.attendance_pause_ns;; pause_ns += pause_ns / 4) {
    const int error = sys::name_take(names_[kDecided], id(Kind::decided));
    if (error == 0) {
      const Verdict found = count(patience_ns);
      const std::uint64_t answer = id(found.all ? Kind::all : Kind::not_all);
      if (sys::name_take(names_[kAnswer], answer) != 0) sys::name_close(&names_[kDecided]);
      return found;
    }
    // The rank that counts makes a few calls between its two names. If it is killed there, its
    // first name is free again.
    if (sys::name_taken(names_[kAsking], id(Kind::all))) return {.all = true};
    if (sys::name_taken(names_[kAsking], id(Kind::not_all))) return {};
    if (error != EADDRINUSE) return count(patience_ns);
    sys::nap_ns(std::min(pause_ns, kTuning.attendance_longest_pause_ns));
  }
}

void Attendance::leave() {
  for (sys::Name& name : names_) sys::name_close(&name);
}

}  // namespace stretto::engine
