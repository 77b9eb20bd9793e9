// SPDX-License-Identifier: BSD-3-Clause
// Receive buffers whose data come after the call has returned. A thread that touches a page before
// its data are there waits for them.
//
// A *cover* is the guard of ranges of one buffer. Their pages lie in spare memory, the *landing*,
// into which data is received. publish() brings pages home and wakes the threads that wait.
// release() brings home what is left, and ends the cover.
//
// Threads. Any thread of the program calls cover() and away(). One thread, the *driver*, calls all
// else, and calls events() whenever faults().fd is readable, as long as the guard is open. The
// driver never touches a cover's buffer, nor a page of a landing after it went home: it would wait
// for itself. It neither allocates nor frees memory: a buffer on the heap may have been freed, and
// the return of its pages to the system is an event that the driver itself must read.
// A thread whose system calls are caught (overlap/calls.hpp) switches that off before cover().
//
// States of a page:
//
//   from   by                                 to     what happens
//   -      cover()                            away   it moves to the landing; a touch waits
//   away   publish(), release()               home   it moves back
//   away   publish_soon()                     home   it moves back later, with its neighbours
//   away   publish(), in a huge page          ready  it waits for the rest of the huge page
//   ready  the rest is ready, too             home   the huge page moves back as a whole
//   ready  a thread waits for the huge page   home   the huge page is opened: its pages go home as
//          for more than `kPatienceNs`               they come
//   away   munmap, MADV_DONTNEED, MADV_REMOVE home   its data is dropped
//   away   mremap                             away   at the new address, same place in the landing
//   home   a touch of a page that is dropped  home   it gets zeros, as from the system
//
// Huge pages. A huge page of the buffer moves to the landing as a whole, and home as a whole, which
// takes 2 and 4 us instead of 40 and 430: the kernel splits a huge page of which a part moves. So
// its pages wait for one another, unless a thread waits for one of them. Then they wait as long as
// splitting takes, and no longer. What was split is made huge again when its data are there (0.5 to
// 5 ms), as long as this takes at most a sixteenth of the time that the data took to come; a later
// cover of the same memory makes up for the others. At the
// ends of a cover are huge pages of which it has a part. They are split, and made huge again.
//
// Races:
//  - *A fault on a page that is published at the same time.* The fault is read when the page is
//    home already. The driver tries to place a zero page. The kernel refuses (EEXIST), as there is
//    one. The thread is woken and finds it. After MADV_DONTNEED the zero page is placed, which is
//    right.
//  - *EAGAIN.* An event is unread, or its thread has not continued yet. publish() reads events and
//    tries again, and returns EAGAIN after a while. What is done is done: call it again.
//  - *EEXIST on a page that is away.* Somebody else put a page there, and the program may have used
//    it. It stays. The page counts as home, its data is dropped, and events() tells `clash`.
//  - *Unmapped while moving.* From the beginning of an munmap or mremap until its event is read the
//    kernel refuses moves with EAGAIN. The event is applied before the next move. So no data goes
//    to memory that came there later: it is not guarded, or by a newer cover.
//  - *Two covers that share a page.* The second is refused. A page has one place in one landing,
//    and the kernel would find no page to move. Waiting could last until a peer calls, and nothing
//    is lost: the call without a cover waits for pages where it touches them. Two threads that ask
//    at the same time may both be refused.
//  - *A page beside a buffer* belongs to none: covers are whole pages inside of buffers.
//
// By signals (sys/faults_signal.hpp) no event tells what the program does with mappings. A caller
// then lets no system call change mappings of pages that are away: see faults().says_memory.
//
// Fork. With fork events (kernel mode, CAP_SYS_PTRACE) a child has the same guards, and gets copies
// of pages as they go home. Its descriptor is told (`fork`), for the driver to wait for as well,
// and told again (`fork_end`) as it is closed. What the parent drops or moves meanwhile the
// child finds as zeros, and likewise what the child moves. Without these events complete all covers
// before a fork.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "overlap/ready_runs.hpp"
#include "overlap/spares.hpp"
#include "sys/faults.hpp"

namespace stretto::overlap {

inline char* address(std::uint64_t at) { return reinterpret_cast<char*>(static_cast<std::uintptr_t>(at)); }

enum class Refusal : std::uint8_t {
  none,
  closed,         // the guard is not open
  too_small,      // shorter than the least, or not whole pages
  too_many,       // kMostCovers are there
  covered,        // shares a page with another cover
  no_memory,      // for the landing
  not_anonymous,  // memory of a file, shared, read-only, locked or of hugetlbfs: the kernel does not say which
  pinned,         // a device or the kernel uses it
  foreign,        // another userfaultfd has it
  cannot_move,    // pages stay where they are
  events_unread,  // the driver sleeps
  copied,         // calls that have returned still hold too much of what they send
  no_thread,      // nobody would bring pages home
  threads,        // user mode, signals: the program has several
  elsewhere,      // user mode, signals: a handler of the program may run on a thread of the MPI
  children,       // user mode, signals: the program has child processes, which may read its memory
  stack,          // user mode, signals: the kernel may put the frame of a signal there
  gaps,           // there are too many between the blocks
  gapped,         // blocks with gaps of their own, and several threads, or no kernel faults
  handled,        // signals: SIGSEGV has a handler that is not ours
  blocked,        // signals: the thread or a handler blocks SIGSEGV
  not_caught,     // the thread blocks SIGSYS, or a handler of the program does: its system calls cannot be caught
  unsuitable,     // the caller knows why
  failed,         // another error; the buffer has its data
  lost,           // several errors: a part of the buffer's data is lost
};
const char* text_of(Refusal why);
Refusal refusal_of(int error);  // of sys/faults.hpp

struct Told {
  enum class Kind : std::uint8_t {
    fault,     // a thread waits for the page at `offset`
    dropped,   // the program has dropped these pages
    clash,     // a page was there already; its data is dropped
    lost,      // mremap cut the buffer into too many pieces: these pages stay without data
    fork,      // `fd` is a child's
    fork_end,  // `fd` is closed when events() returns
  };
  Kind kind = Kind::fault;
  bool write = false;
  int cover = -1;
  std::uint64_t offset = 0;  // in the cover
  std::uint64_t bytes = 0;
  std::uint32_t thread = 0;  // fault: the thread that waits, 0: unknown
  int fd = -1;
};

// The driver is to call events() by then, too. ~0: it need not.
struct Alarm {
  void* context = nullptr;
  void (*set)(void* context, std::uint64_t ns) = nullptr;
};

class Guard {
 public:
  static constexpr int kMostCovers = kMostSpares;
  static constexpr std::size_t kMostRanges = 64;  // of a cover
  struct Limits {
    sys::FaultMode most = sys::FaultMode::user;  // signal: this mode and no other
    bool forks = false;                          // ask for fork events
    std::size_t least_bytes = 64 << 10;          // of a cover
    std::size_t spare_bytes = 1ull << 30;        // of all landings, used or kept for later
    std::uint64_t making_share = 16;  // of the time of a call, 1 / so much may go to making huge pages; 0: any
    Alarm alarm;
  };
  static constexpr std::uint64_t kPatienceNs = 1'000'000;
  static constexpr std::uint64_t kTogetherBytes = 32 << 10;

  Guard() = default;
  ~Guard() { close(); }
  Guard(const Guard&) = delete;
  Guard& operator=(const Guard&) = delete;

  // Errors as of sys::faults_open and faults_open_signal. EOPNOTSUPP: no moves, or no events of
  // memory.
  int open(const Limits& limits);
  void close();  // releases all covers
  [[nodiscard]] const sys::Faults& faults() const { return faults_; }

  // ---- the program's threads ----
  // Guards these ranges of a buffer, in ascending order, which no thread uses meanwhile. Offsets
  // count from the first of them. What lies between them is never touched. Refused: all is as
  // before.
  Refusal cover(const sys::Pages* ranges, std::size_t count, int* cover);
  Refusal cover(sys::Pages pages, int* cover) { return this->cover(&pages, 1, cover); }
  // Whether a byte of this memory is away, after all that this thread did to mappings, and where
  // such a page begins. Takes no lock, and makes no system call that is caught: handlers of signals
  // and of calls may ask.
  [[nodiscard]] bool away(std::uint64_t address, std::uint64_t bytes, std::uint64_t* where = nullptr) const;
  [[nodiscard]] bool any_away() const { return away_bytes_.load(std::memory_order_acquire) != 0; }

  // ---- the driver ----
  [[nodiscard]] char* landing(int cover) const { return covers_[cover].landing.at; }
  [[nodiscard]] std::uint64_t away_bytes(int cover) const {
    return covers_[cover].away_bytes.load(std::memory_order_acquire);
  }
  // So far: calls of the kernel that have brought pages home, and touches of pages that were away,
  // as often as the kernel told of them.
  [[nodiscard]] std::uint64_t moves() const { return moves_; }
  [[nodiscard]] std::uint64_t touches() const { return touches_; }
  // Brings whole pages home, or makes them ready. Pages that are home already are passed over.
  int publish(int cover, std::uint64_t offset, std::uint64_t bytes);
  // The same later: once a run of neighbours has kTogetherBytes, with the next events(). The alarm
  // asks for these. Once a thread has touched what is away, all runs go home with each events():
  // it may wait for any of them. So the driver moves at most once a turn for each run, and mostly
  // moves much (ready_runs.hpp). release() leaves none.
  void publish_soon(int cover, std::uint64_t offset, std::uint64_t bytes);
  [[nodiscard]] bool is_home(int cover, std::uint64_t offset) const {
    return page(covers_[cover], offset).load(std::memory_order_acquire) == kHome;
  }
  // Brings home what is away with what the landing holds. After an error the cover is there still.
  int release(int cover);
  // What has happened, at most `most` entries. Call again if the array is full. 0 or errno.
  int events(Told* told, int most, int* count);

 private:
  enum class State : std::uint8_t { free, taken, opening, live };
  static constexpr int kMostParts = static_cast<int>(kMostRanges) + 16;  // the program may move parts of them
  static constexpr int kMostChildren = 8;
  static constexpr int kMostTold = 128;
  static constexpr std::uint8_t kHome = 0, kAway = 1, kReady = 2;
  static constexpr std::uint64_t kNever = ~std::uint64_t{0};
  // A failure comes alone, as a rule: what fails once is tried again.
  template <class Action>
  static int twice(Action action) {
    return action() == 0 ? 0 : action();
  }

  // Where pages of a cover are now. Written by the driver within a change of `version`.
  struct Part {
    std::atomic<std::uint64_t> at{0}, offset{0}, bytes{0};
  };
  struct Cover {
    std::atomic<State> state{State::free};
    std::atomic<std::uint32_t> version{0};  // odd: parts change. Each cover begins with another.
    std::atomic<int> parts{0};
    Part part[kMostParts];
    sys::Pages landing;
    std::atomic<Spares::Spare*> spare{nullptr};  // the last one, when there is no cover
    std::atomic<std::uint64_t> away_bytes{0};
    ReadyRuns soon;                           // what publish_soon() has left; the driver's, as the next one
    bool is_touched = false;                  // a thread has waited, and may wait for what comes next
    bool dirty = false;                       // the landing has pages still
    std::size_t units = 0;                    // 0: it has no huge pages
    std::uint64_t begin = 0, lead_bytes = 0;  // where it began; of the first unit before that
    bool changed = false;                     // the program has dropped, unmapped or moved a part
    std::uint64_t began_ns = 0, making_ns = 0;
  };
  struct Piece {
    std::uint64_t offset = 0, bytes = 0, at = 0;
  };

  // ---- cover ----
  Cover* take_slot();
  void wait_for_driver() const;
  void begin_cover(Cover* cover, const sys::Pages* ranges, std::size_t count);
  int guard_all(const Cover& cover, const sys::Pages* ranges, std::size_t count);
  int unguard(const Cover& cover, sys::Pages range);
  void drop_cover(Cover* cover, bool reuse);
  bool shares_a_page(const Cover& cover) const;
  bool rescue(const Cover& cover, sys::Pages range);
  // ---- pages ----
  std::atomic<std::uint8_t>& page(const Cover& cover, std::uint64_t offset) const {
    return cover.spare.load(std::memory_order_relaxed)->away[offset / faults_.page_bytes];
  }
  bool part_away(const Cover& cover, const Part& part, std::uint64_t address, std::uint64_t end,
                 std::uint64_t* where) const;
  Piece next_away(const Cover& cover, std::uint64_t offset, std::uint64_t end, std::uint8_t least) const;
  std::uint64_t mark_home(Cover* cover, std::uint64_t offset, std::uint64_t bytes);
  int bring(Cover* cover, const Piece& piece, std::uint64_t* done);
  int bring_all(Cover* cover, std::uint64_t offset, std::uint64_t end, std::uint8_t least = kAway);
  void bring_soon(int cover, std::uint64_t least_bytes);
  void bring_due();
  int bring_by_copy(Cover* cover, const Piece& piece, std::uint64_t* done);
  // ---- huge pages ----
  template <class Each>
  void each_unit(Cover* cover, const char* memory, const Each& each);
  void find_units(Cover* cover, sys::Pages hull);
  [[nodiscard]] bool is_guarded_whole(const Cover& cover, std::uint64_t at) const;
  void check_units(Cover* cover);
  static HugeUnit& huge_unit(const Cover& cover, std::size_t unit);
  [[nodiscard]] std::size_t unit_at(const Cover& cover, std::uint64_t offset) const;
  [[nodiscard]] std::uint64_t unit_address(const Cover& cover, std::size_t unit) const;
  std::atomic<std::uint64_t>& place_of(std::uint64_t unit);
  void owe(std::uint64_t unit, bool owed);
  [[nodiscard]] Piece unit_part(const Cover& cover, std::size_t unit) const;
  bool hold(Cover* cover, std::size_t unit, const Piece& pages);
  void is_wanted(Cover* cover, std::uint64_t offset);
  void is_changed(Cover* cover);
  void open_unit(Cover* cover, std::size_t unit);
  void open_overdue();
  void make_huge(Cover* cover, std::size_t unit, bool is_registered);
  void make_rest_huge(Cover* cover);
  void due_at(std::uint64_t ns);
  // ---- events ----
  [[nodiscard]] bool is_answered(const Told& told) const;
  int take_in();
  void apply(const sys::FaultEvent& event);
  void on_fault(const sys::FaultEvent& event);
  void on_dropped(std::uint64_t address, std::uint64_t bytes, bool unmapped);
  void on_moved(std::uint64_t from, std::uint64_t to, std::uint64_t bytes);
  void lose(int cover, std::uint64_t offset, std::uint64_t bytes);
  bool cut(Cover* cover, std::uint64_t address, std::uint64_t bytes, Piece* cut_out);
  bool add_part(Cover* cover, const Piece& piece);
  bool find(std::uint64_t address, int* cover, std::uint64_t* offset) const;
  bool tell(const Told& told);
  // ---- children ----
  void on_fork(int fd);
  void drain(const sys::Faults& child);
  void copy_to_children(const Piece& piece, const char* from);
  void end_children();

  sys::Faults faults_;
  Limits limits_;
  mutable Spares spares_;
  Cover covers_[kMostCovers];
  std::atomic<std::uint64_t> away_bytes_{0};
  std::atomic<std::uint64_t> applying_{0};  // odd: the driver reads events and applies them
  Told told_[kMostTold];
  int told_begin_ = 0, told_count_ = 0;
  std::uint64_t moves_ = 0, touches_ = 0;
  std::uint64_t due_ns_ = kNever;
  static constexpr std::size_t kMostOwed = 1024;
  std::atomic<std::uint64_t> owed_[kMostOwed] = {};
  int children_[kMostChildren] = {-1, -1, -1, -1, -1, -1, -1, -1};
};

}  // namespace stretto::overlap
