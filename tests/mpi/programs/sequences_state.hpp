// SPDX-License-Identifier: BSD-3-Clause
// The state of a random sequence: slots for communicators, requests and datatypes, and its log.
#pragma once
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <memory>
#include <set>
#include <string>
#include <tuple>
#include <vector>

#include "sequences_data.hpp"

namespace sequences {

struct Options {
  std::uint64_t first = 1;
  int count = 1, operations = 30;
  std::set<int> only;             // empty: all
  std::set<std::string> without;  // features to leave out
  bool list = false, threads = false;
  std::string logs;  // a folder
};

enum class Topology { none, grid, graph };

struct Communicator {
  MPI_Comm handle = MPI_COMM_NULL;
  int rank = 0, size = 0;
  Topology topology = Topology::none;
  std::vector<int> sources, destinations;
  std::shared_ptr<bool> lives = std::make_shared<bool>(true);  // requests outlive communicators

  [[nodiscard]] bool empty() const { return handle == MPI_COMM_NULL; }
};

// ---- What an operation leaves behind: its buffers, and what to write down when it ends ----

struct Transfer {
  int index = 0;
  std::string text;
  Bytes send, receive;
  Values values = Values::bytes;
  bool logs_receive = true;                 // MPI says what is in it
  std::size_t receive_most = SIZE_MAX;      // bytes of it of which MPI says so
  bool has_status = false;                  // source, tag and count mean something
  bool has_count = false;                   // the status has a count
  bool may_fail = false;                    // its error is in the status only
  MPI_Datatype counted = MPI_INT;           // what the status' count counts
  std::vector<std::shared_ptr<void>> kept;  // arrays that the MPI may read until the end

  void fill(std::uint64_t seed, int rank, int round) {
    send.fill(Random(seed, index, rank, round, 1), values);
    receive.fill(Random(seed, index, rank, round, 2), values);
  }
};

struct Posted {
  MPI_Request request = MPI_REQUEST_NULL;
  bool persistent = false, active = false;
  int round = 0;
  std::shared_ptr<Transfer> transfer;
  std::shared_ptr<bool> comm_lives;
};

constexpr std::size_t kComms = 6, kRequests = 8, kElements = 4;

struct State {
  explicit State(const Options& o) : options(o) {}

  const Options& options;
  std::uint64_t seed = 0;
  int world_rank = 0, world_size = 0;
  int index = 0;  // of the operation that runs
  std::array<Communicator, kComms> comms;
  std::array<std::vector<Posted>, kRequests> requests;
  std::array<Element, kElements> elements;
  std::vector<std::shared_ptr<Transfer>> detached;  // sends whose requests were freed
  std::vector<MPI_Datatype> dropped;                // to be freed at the end
  OwnOperations own;
  MPI_Comm any_tag = MPI_COMM_NULL;  // no message is under way on it between operations
  std::vector<std::tuple<int, int, std::string>> lines;

  [[nodiscard]] bool with(const char* feature) const { return !options.without.contains(feature); }

  void log(int i, int round, const std::string& text) { lines.emplace_back(i, round, text); }

  // Rank 0 says in words what it is about to do.
  void say(const std::string& text) const {
    if (!options.list || world_rank != 0) return;
    std::printf("%llu.%d %s\n", static_cast<unsigned long long>(seed), index, text.c_str());
    std::fflush(stdout);
  }

  void write(std::FILE* file) {
    std::sort(lines.begin(), lines.end());
    const auto s = static_cast<unsigned long long>(seed);
    for (const auto& [i, round, text] : lines) std::fprintf(file, "%llu %d.%d %s\n", s, i, round, text.c_str());
    std::fprintf(file, "%llu end\n", s);
    std::fflush(file);
    lines.clear();
  }
};

inline std::string error_class(int code) {
  int result = MPI_SUCCESS;
  if (code != MPI_SUCCESS) MPI_Error_class(code, &result);
  return std::to_string(result);
}

inline std::string number_of(std::size_t slot) { return std::to_string(slot); }

// The fields of a status that mean something. That of a probe does not say whether it was
// cancelled.
inline std::string status_text(const MPI_Status& status, MPI_Datatype counted, bool with_count) {
  int count = 0;
  std::string text = " from " + std::to_string(status.MPI_SOURCE) + " tag " + std::to_string(status.MPI_TAG);
  if (with_count) {
    MPI_Get_count(&status, counted, &count);
    text += " count " + std::to_string(count);
  }
  return text;
}

// One line for a transfer that has ended.
inline void log_end(State& state, const Transfer& t, int round, int error, const MPI_Status* status) {
  std::string text = t.text + " | class " + error_class(error);
  int cancelled = 0;
  if (status && t.has_status) {
    MPI_Test_cancelled(status, &cancelled);
    if (cancelled != 0) text += " cancelled";
    if (error == MPI_SUCCESS && cancelled == 0) text += status_text(*status, t.counted, t.has_count);
  }
  if (error == MPI_SUCCESS && cancelled == 0) {
    if (t.logs_receive) text += " received " + t.receive.digest(t.receive_most);
    text += " sent " + t.send.digest();
  }
  state.log(t.index, round, text);
}

}  // namespace sequences
