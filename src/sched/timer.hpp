// SPDX-License-Identifier: BSD-3-Clause
// The timer: runs the schedules of all ranks in virtual time (costs.hpp says what steps cost).
//
// A rank has one processor of its own, or takes the first free one of those that its domain shares.
// A step may begin when its dependencies are complete, its message is there, the processor is free
// and the gap has passed. Of several steps, the timer takes the one that can begin first. At equal
// times sends go first, as the executor posts them; the others follow by priority and schedule.
//
// The timer looks at all events of one time together. So results do not depend on the order in
// which it looks at ranks. Only at a shared port and a shared processor, the lower rank goes first.
//
// Messages are eager: a send is complete when its processor time is over. The receiver's port takes
// one message at a time, in the order of their first bytes, or all that are there at once
// (costs.hpp). A recv_reduce combines as soon as it has received, without a break.
//
// Schedules are built one at a time and kept as 32 bytes a step. A binomial tree of a million ranks
// takes 350 MiB. Every step keeps when it began, and after what. The critical path, idle times and
// diagrams are read from that after the run.
#pragma once
#include <cstdint>

#include "sched/builder.hpp"
#include "sched/costs.hpp"
#include "sched/event_queue.hpp"
#include "topo/hierarchy.hpp"

namespace stretto::sched {

// Why a rank's processor had nothing to do.
enum class Idle : std::uint8_t {
  partner,  // the message it waited for had not been sent yet
  wire,     // the message was on its way: overhead of the sender, latency, bytes
  port,     // the message was held up at a port
  gap,      // the rank's own gap had not passed
  crowd,    // other ranks had all the processors
};
inline constexpr int kIdles = 5;
inline constexpr const char* kIdleNames[kIdles] = {"partner", "wire", "port", "gap", "crowd"};

struct RankTime {
  double start = 0, end = 0;  // end: of its last step
  double idle[kIdles] = {};
  [[nodiscard]] double busy() const { return end - start - idle[0] - idle[1] - idle[2] - idle[3] - idle[4]; }
};

// What made a step begin when it did.
enum class Cause : std::uint8_t { entry, processor, message, gap, crowd };

class Timer {
 public:
  static constexpr std::uint32_t kNone = ~std::uint32_t{0};

  struct Job {
    int ranks = 1;
    std::uint64_t unit_bytes = 1;
    const topo::Hierarchy* hierarchy = nullptr;  // null: all ranks in one group
    const double* starts = nullptr;              // when each rank calls; null: all at 0
    // How many ranks stand for all (symmetry.hpp). 0: each for itself. `starts` has as many entries
    // as ranks are timed.
    int period = 0;
    [[nodiscard]] int timed_ranks() const { return period > 0 ? period : ranks; }
  };

  // Times a job. build(builder, rank) makes the schedules of the timed ranks, once each, in their
  // order. False: failure() says why.
  template <class Build>
  bool run(const Job& job, const Costs& costs, Build build) {
    start(job, costs);
    for (int rank = 0; rank < job.timed_ranks(); ++rank) {
      Schedule schedule = build(builder_, rank);
      if (!schedule.complete || !lower(schedule)) return fail("no memory");
      builder_.recycle(static_cast<Schedule&&>(schedule));
    }
    return match() && execute();
  }

  // What is wrong, in words.
  [[nodiscard]] const char* failure() const { return failure_; }

  // ---- After a run: of the timed ranks ----
  [[nodiscard]] double end() const { return end_; }
  [[nodiscard]] const RankTime& rank(int rank) const { return ranks_[rank].time; }
  [[nodiscard]] std::uint64_t steps() const { return steps_.size(); }
  [[nodiscard]] std::uint64_t events() const { return events_; }

  // One step as it was executed. Steps are numbered rank by rank; within a rank by priority, then
  // as in the schedule.
  struct View {
    int rank;
    Kind kind;
    Cause cause;
    int segment;
    int path;  // of a message
    std::uint64_t bytes;
    double begin, end;           // of the processor
    double overhead;             // the message's part of it; the rest combines
    double latency, bytes_time;  // of a message, if no port is taken
    std::uint32_t partner;       // the step at the other end of the message; kNone: local
    std::uint32_t previous;      // what the rank's processor did before; kNone: nothing
  };
  [[nodiscard]] View step(std::uint32_t step) const;
  [[nodiscard]] std::uint32_t first_step(int rank) const { return ranks_[rank].first_step; }
  [[nodiscard]] std::uint32_t last_step(int rank) const {
    return ranks_[static_cast<std::size_t>(rank) + 1].first_step;
  }
  // What a step waited for last: the end of a step of its rank, or a message's send. kNone: its
  // rank's start.
  [[nodiscard]] std::uint32_t cause_of(std::uint32_t step) const;
  // The step that ends last. kNone: there are no steps.
  [[nodiscard]] std::uint32_t final_step() const;

 private:
  // What competes for the processor; at equal times the first goes first.
  enum Class : std::uint8_t { sends, receives, local };
  static constexpr int kClasses = 3;

  // The cost of all steps of one kind, path and length.
  struct Cost {
    std::uint64_t bytes;
    Kind kind;
    std::uint8_t path;
    bool takes_port;  // the receiver's, for a time
    bool shared_port;
    double processor, overhead;
    double interval;  // to the next message
    double handling;
    double latency, bytes_time;
  };
  struct Timed {
    std::uint32_t cost;
    std::uint32_t rank;
    std::uint32_t partner;
    std::uint32_t first_successor;
    // Dependencies, and the message, that are to come. Once the step has begun: the processor's
    // step before it.
    std::uint32_t pending;
    std::uint16_t segment;
    Kind kind;
    Cause cause;
    double time;  // before it begins: since when it might; then: when it began
  };
  static_assert(sizeof(Timed) == 32);
  struct Rank {
    RankTime time;
    double free = 0;      // when the processor is free
    double handling = 0;  // processor time due for messages
    double next[2] = {};  // earliest begin of a send, of a receive
    double turn = 0;      // when it looks, where waiting ranks take turns on a processor
    double port = 0;      // when the receiving port is free, or its first message is through
    // For messages that share the port: how many bytes a message would have got by the time
    // `served_at`, if it had been in the port from the start.
    double served = 0, served_at = 0;
    std::uint32_t first_flow = kNone, flows = 0;
    double wake = 0;  // the earliest event that will look at this rank
    std::uint32_t first_step = 0;
    std::uint32_t first_word = 0;
    std::uint32_t lowest[kClasses] = {};  // words before it have no ready step
    std::uint32_t left = 0;
    std::uint32_t previous = kNone;
    bool listed = false;
  };
  struct Ports {
    double out, in;
  };
  // A message in a receiving port that all messages share. A list has them in the order in which
  // they will be through.
  struct Flow {
    double served;  // the message is through when Rank::served has reached this
    std::uint32_t receive;
    std::uint32_t next;
  };
  struct Choice {
    std::uint32_t step;
    double begin;
  };

  void start(const Job& job, const Costs& costs);
  bool fail(const char* what);
  bool lower(const Schedule& schedule);
  void order(const Schedule& schedule);
  std::uint32_t cost_of(const Step& step);
  Cost make_cost(Kind kind, int path, std::uint64_t bytes) const;
  void grow_costs();
  int path(std::uint32_t rank, int peer) const;
  void sort_messages(std::uint32_t first, std::uint32_t last);
  std::uint32_t find_receive(std::uint32_t rank, std::uint64_t address) const;
  bool match();

  bool execute();
  void sort_batch();
  void handle(const Event& event);
  void look_at(std::uint32_t rank);
  void wake(std::uint32_t rank, double time);
  void decide(std::uint32_t rank);
  void handle_messages(std::uint32_t rank);
  Choice choose(Rank& rank) const;
  void perform(std::uint32_t rank, std::uint32_t step);
  void account(Rank& rank, Timed& step);
  std::size_t crowd_of(std::uint32_t rank) const;
  double* processor_of(std::uint32_t rank);
  double turn_of(std::uint32_t rank) const;
  void dispatch(const Timed& step, const Cost& cost);
  double pass(double Ports::* way, std::uint32_t rank, const Cost& cost, double time);
  void land(std::uint32_t receive);
  void join(std::uint32_t receive, double time);
  void drain(std::uint32_t rank);
  void arrive(std::uint32_t receive);
  void set_ready(Rank& rank, std::uint32_t step, double since);
  std::uint32_t first_ready(Rank& rank, int of) const;
  bool is_ready(Rank& rank) const;
  std::uint64_t* words(const Rank& rank, int of) {
    return ready_.data() + rank.first_word + static_cast<std::size_t>(of) * rank_words(rank);
  }
  const std::uint64_t* words(const Rank& rank, int of) const {
    return ready_.data() + rank.first_word + static_cast<std::size_t>(of) * rank_words(rank);
  }
  static std::size_t rank_words(const Rank& rank) { return ((&rank + 1)->first_word - rank.first_word) / kClasses; }
  static Class class_of(Kind kind) {
    return kind == Kind::send ? sends : kind == Kind::recv || kind == Kind::recv_reduce ? receives : local;
  }
  double processor_end(const Timed& step) const { return step.time + costs_[step.cost].processor; }
  Ports& port_of(std::uint32_t rank, int i);

  Job job_;
  Costs model_;
  Builder builder_;
  const char* failure_ = nullptr;
  double now_ = 0, end_ = 0;
  std::uint64_t events_ = 0;
  bool ports_are_taken_ = false;

  Array<Timed> steps_;
  Array<std::uint32_t> successors_;
  Array<Rank> ranks_;           // and one more, for the ends of what lies in a row
  Array<std::uint64_t> ready_;  // bits of the steps that might begin: by rank, by class
  Array<Cost> costs_;
  Array<std::uint32_t> cost_places_;  // open addressing; the size is a power of two
  Array<Ports> ports_;                // of all domains of all levels that have any
  int first_port_[topo::kMostLevels + 1] = {};
  int ports_each_[topo::kMostLevels + 1] = {};
  Array<Flow> flows_;  // entries of messages that are through are used again
  std::uint32_t free_flow_ = kNone;
  Array<double> processors_;      // when each is free, by domain
  Array<std::uint32_t> at_work_;  // ranks of each such domain that are not done
  EventQueue queue_;
  Array<Event> batch_;
  Array<std::uint32_t> looked_at_;  // ranks, in this batch
  // Used while schedules come in.
  Array<std::uint64_t> addresses_;   // of messages: direction, peer, message_index
  Array<std::uint32_t> by_address_;  // steps of each rank
  Array<std::uint32_t> order_, place_, fill_;
};

}  // namespace stretto::sched
