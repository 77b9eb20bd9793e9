// SPDX-License-Identifier: BSD-3-Clause
// One call whose messages the driver moves. It may have returned: then its buffer is guarded, and
// data goes home as it comes.
//
// Threads. The thread that makes the call prepares it, begins it and waits. The driver's thread is
// told of messages, and brings pages home. Any thread of the program waits for a call that has
// returned, and reaps it when it is over. The driver's thread neither allocates nor frees.
//
//   state     next      by whom, and when
//   free      begun     its thread: it posts messages
//   begun     over      the driver: all messages are done and no page is away
//   begun     returned  its thread: the call has all sources, and what cannot be guarded is there
//   returned  over      the driver: all messages are done and no page is away. A failure ends the
//                       job.
//   over      free      a thread of the program: it gives the messages back
//
// `returned` is a flag beside the count of what is open, because both change at the same time. The
// thread sets the flag and then looks for a failure. The driver notes a failure and then looks for
// the flag. Both are sequentially consistent, so at least one of them sees the other.
#pragma once
#include <atomic>

#include "base/private_heap.hpp"
#include "overlap/exchange.hpp"
#include "overlap/touches.hpp"
#include "shm/deferred.hpp"
#include "shm/waiter.hpp"

namespace stretto::overlap {

class Pending {
 public:
  // `notes` is where others see what is under way; null: nowhere.
  Pending(transport::bulk::Driver& messages, Guard& guard, shm::DeferredNotes* notes)
      : messages_(messages), guard_(guard), notes_(notes) {}
  ~Pending();
  Pending(const Pending&) = delete;
  Pending& operator=(const Pending&) = delete;

  // ---- the thread that makes the call ----
  // Which of the receives are wanted first, as the site has learned it. Before cover() and begin().
  void prefer(const Array<std::uint32_t>* order);  // null: none
  // Guards the buffer if it can. None: it is guarded. After another refusal the call has to wait
  // for all data.
  Refusal cover(const Exchange& call, std::uint64_t unit);
  // The same for a buffer whose parts have gaps, in two steps. Gaps are the program's: a handler of
  // a signal, or the MPI for another message, may use them at any time, and would wait for data of
  // sources that need this rank's MPI to come at all. So pages move when all sources are in the
  // call. Until then data wait in the packed copy.
  Refusal prepare_gapped(const Exchange& call);
  [[nodiscard]] bool may_cover_gapped() const {
    return waits_for_cover_ && unseen_.load(std::memory_order_acquire) == 0;
  }
  Refusal cover_gapped(std::uint64_t unit);  // once
  void forgo_cover();                        // if it has not been covered so far, it will not be
  // Posts all messages. After an error the call must be abandoned, and ends.
  Status begin(const Exchange& call);
  // The same for a call with ends, which it brings.
  Status begin_with_ends(const Exchange& call, const shm::WaitPolicy& policy);
  // All sources are in the call, and nothing that is missing lies outside of guarded pages.
  [[nodiscard]] bool may_return() const {
    return (is_covered() || fills_nothing_) && unseen_.load(std::memory_order_acquire) == 0 &&
           edges_here_.load(std::memory_order_acquire);
  }
  // For a call that fills no buffer here: takes a copy of what it sends. False: no memory.
  bool copy_all(const Exchange& call);
  void do_not_cover() {
    cover_ = -1;
    fills_nothing_ = is_gapped_ = waits_for_cover_ = is_placing_ = false;
  }
  // From now on a failure is the driver's to tell. False: there has been one already.
  bool return_now();
  // Ends all messages of the call.
  void abandon();

  // ---- any thread ----
  [[nodiscard]] bool over() const { return open_.load(std::memory_order_acquire) == 0; }
  [[nodiscard]] Status status() const { return status_.load(); }
  [[nodiscard]] bool is_covered() const { return cover_ >= 0; }
  [[nodiscard]] std::uint64_t comm() const { return comm_; }
  [[nodiscard]] bool has_returned() const { return returned_.load(); }
  [[nodiscard]] const transport::Lost& lost() const { return lost_; }  // once it is over
  // Some of its data is not there yet.
  [[nodiscard]] bool has_away() const { return !home_.load(std::memory_order_acquire); }
  [[nodiscard]] bool touches(std::uint64_t address, std::uint64_t bytes) const;
  [[nodiscard]] SiteKey site() const { return {comm_, name_, memory_, memory_bytes_}; }
  // So long threads have waited for its pages, without waits that last.
  [[nodiscard]] std::uint64_t touched_ns() const { return touched_ns_.load(std::memory_order_relaxed); }
  // A thread waits for it in a function of MPI.
  void hold();
  // In the handler of a signal: a system call has waited for it since then, and waits no more.
  void catch_call(std::uint64_t now_ns) { note_.waits(shm::DeferredWait::system_call, now_ns); }
  void let_go(std::uint64_t since_ns, std::uint64_t now_ns);
  // Of a call that has returned early and is over: what the site learns from it.
  // Times of its timeline are counted from `origin_ns` on.
  void teach(Sites::Site* site, std::uint64_t origin_ns) const;
  // Of a call that is over: its messages are the transport's again.
  void reap();

  // ---- the driver ----
  // A thread waits for the page at this offset of the cover.
  void wanted(std::uint64_t offset);
  [[nodiscard]] int index_of_cover() const { return cover_; }
  [[nodiscard]] std::uint64_t copy_bytes() const { return copy_bytes_ + (is_gapped_ ? buffer_bytes_ : 0); }

  std::atomic<bool> taken{false};

 private:
  struct Receive {
    MessageIn what;
    transport::bulk::Handle handle = nullptr, forwarded = nullptr;
    char* staged = nullptr;                      // it comes here first, and goes on from here
    const char* own = nullptr;                   // a copy of this rank's contribution
    std::uint32_t part = 0, forwarded_part = 0;  // of the note
    std::uint64_t asked = 0, reached = 0;        // what was hurried last, and how far that has come
    bool seen = false, hurried = false, noted = false;
  };

  bool prepare(const Exchange& call);
  bool copy_what_goes(const Exchange& call);
  Status post_receive(Receive& receive, std::size_t place);
  Status post_send(const MessageOut& send, std::uint32_t part, transport::bulk::Handle* handle);
  bool write_note(const Exchange& call);
  [[nodiscard]] DriverWork work_so_far() const;
  void begin_pages();
  void has_arrived(const transport::bulk::Message& message, std::uint64_t offset, std::uint64_t bytes);
  void has_finished(const transport::bulk::Message& message, Status status);
  void bring_home(const UnitRun& run);
  void end_unposted();
  void ends_are_here();
  void begin_placing();
  void place(std::uint64_t offset, std::uint64_t bytes);
  void has_placed(std::uint64_t offset, std::uint64_t bytes);
  void do_on_thread(void (*task)(void* self));
  void one_receive_less();
  void end_cover();
  void one_less();
  void pass_on(Receive& receive);
  void note_wanted(Receive& receive);
  [[nodiscard]] bool fills_unit(const MessageIn& what, std::uint64_t at) const;
  void show_touch();
  void teach_waits(Sites::Site* site, std::uint64_t origin_ns) const;
  void note_failure(Status status, const transport::Lost& lost);
  void combine(const Receive& receive) const;
  void reaches_buffer(const Receive& receive, std::uint64_t offset, std::uint64_t bytes);
  void take_to_buffer(std::uint64_t begin, const char* from, std::uint64_t bytes);
  [[nodiscard]] std::uint32_t ask_order(const MessageIn& what, transport::bulk::Range* order) const;

  transport::bulk::Driver& messages_;
  Guard& guard_;
  shm::DeferredNotes* const notes_;
  shm::DeferredWriter note_;
  std::uint64_t comm_ = 0, call_ = 0;
  const char* name_ = "";
  FailureHandler on_failure_;
  char* buffer_ = nullptr;
  std::uint64_t buffer_bytes_ = 0;
  char* memory_ = nullptr;  // the program's: the buffer, or what it is a packed copy of
  std::uint64_t memory_bytes_ = 0;
  GappedParts gapped_;
  std::atomic<std::uint64_t> begins_{0}, ends_{0};  // where it lies, for any thread
  Block own_;
  Ends vector_ends_;
  int cover_ = -1;
  bool fills_nothing_ = false, is_pipeline_ = false;
  bool is_gapped_ = false, waits_for_cover_ = false;
  Fold fold_;
  PageLayout layout_;
  Array<sys::Pages> ranges_;  // what is guarded
  Arrival arrival_;
  Array<Receive> receives_;
  Array<transport::bulk::Handle> sends_;
  Array<std::uint32_t> send_parts_;  // of the note
  Array<int> peers_;
  Array<std::uint32_t> positions_;  // of the receives; empty: as they stand
  // The driver's: receives as they were waited for, or complete. From malloc it might get memory
  // that the program has freed, and whose data are under way.
  Array<std::uint32_t, PrivateHeap> wanted_;
  std::uint64_t returned_ns_ = 0, home_ns_ = 0;
  Touches touches_;                                        // the driver's
  DriverWork work_, began_;                                // the driver's; what its thread had used by then
  std::atomic<std::uint64_t> touched_ns_{0};               // of those that are over
  std::atomic<std::uint64_t> held_ns_{0};                  // since when a function of MPI waits; 0: none
  std::atomic<std::uint64_t> caught_ns_{0}, calls_ns_{0};  // when a system call first waited, and all of them how long
  char* copy_ = nullptr;                                   // of what is sent, and of what is sent on
  std::uint64_t copy_bytes_ = 0;

  std::atomic<std::uint32_t> unseen_{0};            // sources
  std::atomic<std::uint32_t> open_{0};              // messages, and the cover
  std::uint32_t receives_left_ = 0, unposted_ = 0;  // the driver's, once the call has begun
  bool is_placing_ = false;                         // the driver's: pages with gaps have moved
  bool has_ends_ = false;                           // they are in the buffer: the driver's, once it is told
  std::atomic<bool> posted_{false}, edges_here_{false}, returned_{false}, home_{false};
  std::atomic<Status> status_{Status::ok};
  transport::Lost lost_;  // the driver's, until the call is over
};

}  // namespace stretto::overlap
