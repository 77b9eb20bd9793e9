// SPDX-License-Identifier: BSD-3-Clause
// One call of the program as it is recorded. The wrappers are generated, with a function for each
// call that says here what the arguments mean (tools/gen/gen_record.py).
//
// What is said stands before the call. Pointers to results are kept, and read after it. Wrong
// arguments are for the host to judge: nothing is said of them. This file does not include mpi.h.
#pragma once
#include <cstdint>
#include <cstdlib>

#include "mpi/host/entry.hpp"
#include "mpi/state/call.hpp"
#include "record/format.hpp"

namespace stretto::mpi {

inline bool recording() { return g_recorded; }

class Recorded {
 public:
  using Role = record::Role;

  [[gnu::hot]] Recorded(Entry entry, const void* caller);
  ~Recorded() {
    if (words_ != few_) std::free(words_);
    std::free(own_);
  }
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;
  [[nodiscard]] explicit operator bool() const { return on_; }

  // ---- Before the call ----

  void comm(Handle comm);
  void sends(int target, int tag, std::int64_t count = -1, Handle type = 0);
  void receives(int source, int tag, std::int64_t count = -1, Handle type = 0);
  void partitions(int count) { word(Role::partitions, count); }
  // Of collectives, files and windows. A `buffer` may be MPI_IN_PLACE.
  void sends_data(const void* buffer, std::int64_t count, Handle type);
  void receives_data(const void* buffer, std::int64_t count, Handle type);
  void sends_blocks(const void* buffer, CountArray counts, Handle type);
  void receives_blocks(const void* buffer, CountArray counts, Handle type);
  void sends_typed(const void* buffer, CountArray counts, const void* types);
  void receives_typed(const void* buffer, CountArray counts, const void* types);
  void root(int root);
  // Whether the arguments are significant here that a root has, those that the others have, and
  // those that all have. In an intercommunicator some ranks take no part.
  [[nodiscard]] bool at_root() const { return at_root_; }
  [[nodiscard]] bool at_leaf() const { return at_leaf_; }
  [[nodiscard]] bool takes_part() const { return at_root_ || at_leaf_; }
  void combines(Handle op, Handle type);
  void on_neighbors() { neighbors_ = true; }
  void window(Handle window);
  void frees_window(void* window);
  void target(int rank) { word(Role::target, rank); }
  void group(Handle group);
  void file(Handle file);
  void closes(void* file);
  void frees_comm(void* comm);
  void waits(int count, void* requests);
  void starts(int count, const void* requests);
  void names(int count, const void* requests);
  void frees_request(void* request);
  void takes_message(void* message);

  // ---- Results: read when the call has ended ----

  void makes(void* request) { made_request_ = request; }
  void makes_message(void* message) { made_message_ = message; }
  void makes_comm(void* comm) { made_comm_ = comm; }
  void makes_window(void* window) { made_window_ = window; }
  void opens(void* file) { made_file_ = file; }
  void says(const int* flag) { flag_ = flag; }
  void ends_one(const int* index) { index_ = index; }
  void ends_some(const int* count, const int* indices) {
    some_count_ = count;
    some_ = indices;
  }
  // The call gets a status of ours where the program wants none, but the source matters.
  void status(void*& status);
  void statuses(void*& statuses);

  [[gnu::hot]] void end(int code);

 private:
  void word(Role role, std::int64_t value) {
    if (open(role, 1)) add(value);
  }
  // Begins a word, whose values add() follow. False: there is no memory.
  bool open(Role role, std::size_t values) {
    if (size_ + values + 2 > capacity_ && !grow(values)) return false;
    words_[size_++] = static_cast<std::int64_t>(role);
    words_[size_++] = static_cast<std::int64_t>(values);
    return true;
  }
  [[gnu::cold, gnu::noinline]] bool grow(std::size_t values);
  void add(std::int64_t value) { words_[size_++] = value; }
  void data(Role role, const void* buffer, std::int64_t count, Handle type);
  void blocks(Role role, const void* buffer, CountArray counts, Handle type, const void* types);
  void slots(Role role, int count, const void* requests);
  void results();
  void requests_end();
  void got(std::size_t position, std::uint32_t slot, const void* status);

  static constexpr std::size_t kFew = 72;
  bool on_ = false;
  bool at_root_ = true, at_leaf_ = true;
  bool neighbors_ = false;
  bool wild_ = false;  // it receives from any source or with any tag, or one of its requests does
  Entry entry_;
  std::uint32_t comm_ = 0;
  std::size_t size_ = 0, capacity_ = kFew;
  std::int64_t* words_ = few_;
  std::int64_t few_[kFew];
  std::uint64_t entered_ = 0, began_ = 0;  // the counter
  std::uint64_t processor_ns_ = 0;         // of the gap, where it is known
  void* requests_ = nullptr;               // of a wait or a test
  int count_ = 0;
  std::size_t first_slot_ = 0;  // where their slots are in the words
  void* made_request_ = nullptr;
  void* made_message_ = nullptr;
  void* made_comm_ = nullptr;
  void* made_window_ = nullptr;
  void* made_file_ = nullptr;
  const int* flag_ = nullptr;
  const int* index_ = nullptr;
  const int* some_count_ = nullptr;
  const int* some_ = nullptr;
  const void* status_ = nullptr;  // where the host writes what came: the program's, or ours
  const void* statuses_ = nullptr;
  void* own_ = nullptr;  // statuses of ours
  alignas(16) unsigned char own_one_[64];
};

// This thread's first gap begins here, at the end of MPI_Init. Its last one ends here, where
// MPI_Finalize begins.
void recorded_first();
void recorded_last();

// Makes a call and records it. `say` says what its arguments mean, and may replace a status.
//
// Hot, or the compiler would take the recorder for as cold as the slow path, and make it small.
template <auto say, Entry entry, class Make, class... Arguments>
[[gnu::hot, gnu::noinline]] int make_recorded(const void* caller, const Make& make, Arguments... arguments) {
  Recorded recorded(entry, caller);
  if (!recorded) return make(arguments...);
  say(recorded, arguments...);
  const int code = make(arguments...);
  recorded.end(code);
  return code;
}

}  // namespace stretto::mpi
