// SPDX-License-Identifier: BSD-3-Clause
#include "measure.hpp"

#include <algorithm>

#include "calls.hpp"
#include "flags.hpp"
#include "job.hpp"
#include "shm/lines.hpp"

namespace stretto::node {
namespace {

// Calls that move much are the same after few.
constexpr double kMuchBytes = 16 << 20;

int usual_calls(const Question& question) {
  const auto ranks = static_cast<double>(question.cores.size());
  const bool is_much = ranks * ranks * static_cast<double>(question.bytes) > kMuchBytes;
  return is_much ? 2 : static_cast<int>(shm::queue_records(static_cast<unsigned>(question.cores.size())));
}

class Measurement {
 public:
  Measurement(const Question& question, Answer& answer)
      : question_(question), answer_(answer), node_(question.machine, question.cores), job_(node_) {
    if (question_.warm_calls == 0) question_.warm_calls = usual_calls(question) + 2;
    if (question_.calls == 0) question_.calls = usual_calls(question);
    answer_.calls = question_.calls;
  }

  void run() {
    const bool ours = is_ours(question_.way);
    if (!ours && !flags_.start(node_, question_.way, question_.bytes)) {
      answer_.error = "no shape of bare flags: " + question_.way;
      return;
    }
    answer_.way = ours ? "ours" : "flags:" + question_.way;
    took_.resize(node_.ranks());
    const bool ended = node_.run([&](int rank) { ours ? run_ours(rank) : run_flags(rank); });
    if (!ended && answer_.error.empty()) answer_.error = "a rank waits for ever";
  }

 private:
  void run_ours(int rank) {
    engine::Decline why;
    engine::Comm* const comm = job_.join(why);
    if (!comm) {
      answer_.error = why.reason;
      return;
    }
    answer_.error = choose(question_.collective, question_.way, *comm);
    if (!answer_.error.empty()) return;
    if (rank == 0) answer_.way = way_of(question_.collective, question_.bytes, question_.way, *comm);
    Buffers buffers(question_.bytes, node_.ranks());
    repeat(rank, call_of(question_.collective, *comm, buffers, question_.bytes), [] {});
  }

  void run_flags(int rank) {
    flags_.join();
    node_.together();
    Buffers buffers(question_.bytes, 1);
    repeat(rank, flags_.call_of(question_.collective, buffers, question_.bytes), [&] { flags_.fill(question_.bytes); });
  }

  template <class Prepare>
  void repeat(int rank, const RankCall& call, Prepare prepare) {
    if (!call) {
      answer_.error = "no such collective by " + answer_.way + ": " + question_.collective;
      return;
    }
    node_.together();
    node_.play(true);
    for (int i = 0; i < question_.warm_calls; ++i) {
      prepare();
      node_.together();
      call();
    }
    node_.together();
    if (rank == 0) node_.directory().start_counting();
    for (int i = 0; i < question_.calls; ++i) {
      prepare();
      node_.together();
      const double begun = node_.now();
      call();
      took_[rank] = node_.now() - begun;
      node_.together();
      if (rank == 0) note();
    }
    if (rank == 0) answer_.counts = node_.directory().counts();
    node_.together();
    const double begun = node_.now();
    for (int i = 0; i < question_.calls; ++i) call();
    answer_.loop_ns = std::max(answer_.loop_ns, (node_.now() - begun) / question_.calls);
    node_.together();
    node_.play(false);
  }

  void note() {
    answer_.last_ns += *std::max_element(took_.begin(), took_.end()) / question_.calls;
    for (const double ns : took_) answer_.mean_ns += ns / node_.ranks() / question_.calls;
  }

  Question question_;
  Answer& answer_;
  Node node_;
  Job job_;
  Flags flags_;
  std::vector<double> took_;
};

}  // namespace

Answer measure(const Question& question) {
  Answer answer;
  Measurement measurement(question, answer);
  measurement.run();
  return answer;
}

}  // namespace stretto::node
