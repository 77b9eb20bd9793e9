// SPDX-License-Identifier: BSD-3-Clause
// What messages between two ranks and work on memory cost, for `stretto model measure`: raw times by length, one JSON object a line.
// The fitting is done in python/stretto/fit.py.
//
//   parameters [--peer R] [--trials N] [--max BYTES]
//
// Rank 0 and rank R (1) measure; the others sleep. By length, in ns, the median over trials and half the distance of the quartiles:
//   rtt      there and back
//   send     processor time of MPI_Isend when the receive is posted
//   receive  processor time of MPI_Wait when the message had time to arrive
//   gap      each further message of a burst
//   reduce, copy   MPI_Reduce_local (sum of doubles), memcpy; both operands in the cache if they fit
#include <mpi.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <vector>

namespace {

int peer_rank = 1;
int trials = 60;
long most_bytes = 4 << 20;
int me = 0;

double now_ns() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return static_cast<double>(t.tv_sec) * 1e9 + static_cast<double>(t.tv_nsec);
}

struct Sample {
  double median = 0, spread = 0;
};
Sample summary(std::vector<double> times) {
  if (times.empty()) return {};
  std::sort(times.begin(), times.end());
  const std::size_t n = times.size();
  return {times[n / 2], (times[n * 3 / 4] - times[n / 4]) / 2};
}

int other() { return me == 0 ? peer_rank : 0; }
constexpr int kTag = 1, kGo = 2, kBack = 3;
void say(int tag) { MPI_Send(nullptr, 0, MPI_BYTE, other(), tag, MPI_COMM_WORLD); }
void hear(int tag) { MPI_Recv(nullptr, 0, MPI_BYTE, other(), tag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
void spin(double ns) {
  const double until = now_ns() + ns;
  while (now_ns() < until) {
  }
}

class Pair {
 public:
  explicit Pair(long bytes) : bytes_(static_cast<int>(bytes)), out_(static_cast<std::size_t>(bytes) + 1, 1), in_(static_cast<std::size_t>(bytes) + 1) {}

  Sample rtt() {
    std::vector<double> times;
    for (int i = -3; i < trials; ++i) {
      const double begin = now_ns();
      if (me == 0) send(), receive();
      else receive(), send();
      if (i >= 0) times.push_back(now_ns() - begin);
    }
    return summary(times);
  }
  // Of the sender, whose receiver is ready and goes on only when it hears that the time was taken.
  Sample send_overhead() {
    std::vector<double> times;
    for (int i = -3; i < trials; ++i) {
      MPI_Request request;
      if (me == 0) {
        hear(kGo);
        const double begin = now_ns();
        MPI_Isend(out_.data(), bytes_, MPI_BYTE, other(), kTag, MPI_COMM_WORLD, &request);
        const double took = now_ns() - begin;
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        hear(kBack);
        if (i >= 0) times.push_back(took);
      } else {
        post(request);
        say(kGo);
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        say(kBack);
      }
    }
    return summary(times);
  }
  // Of rank 0 as receiver: the message has had `patience` ns to come before rank 0 looks.
  Sample receive_overhead(double patience) {
    std::vector<double> times;
    for (int i = -3; i < trials; ++i) {
      MPI_Request request;
      if (me == 0) {
        post(request);
        say(kGo);
        spin(patience);
        const double begin = now_ns();
        MPI_Wait(&request, MPI_STATUS_IGNORE);
        if (i >= 0) times.push_back(now_ns() - begin);
        say(kBack);
      } else {
        hear(kGo);
        send();
        hear(kBack);
      }
    }
    return summary(times);
  }
  Sample gap() {
    const int burst = bytes_ <= 16384 ? 32 : bytes_ <= 1 << 20 ? 8 : 4;
    std::vector<double> times;
    for (int i = -2; i < std::max(10, trials / 3); ++i) {
      const double one = burst_of(1);
      const double many = burst_of(burst);
      if (i >= 0) times.push_back((many - one) / (burst - 1));
    }
    return summary(times);
  }

 private:
  void send() { MPI_Send(out_.data(), bytes_, MPI_BYTE, other(), kTag, MPI_COMM_WORLD); }
  void receive() { MPI_Recv(in_.data(), bytes_, MPI_BYTE, other(), kTag, MPI_COMM_WORLD, MPI_STATUS_IGNORE); }
  void post(MPI_Request& request) { MPI_Irecv(in_.data(), bytes_, MPI_BYTE, other(), kTag, MPI_COMM_WORLD, &request); }
  double burst_of(int count) {
    std::vector<MPI_Request> requests(static_cast<std::size_t>(count));
    if (me != 0) {
      for (MPI_Request& request : requests) post(request);
      say(kGo);
      MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
      say(kBack);
      return 0;
    }
    hear(kGo);
    const double begin = now_ns();
    for (MPI_Request& request : requests) MPI_Isend(out_.data(), bytes_, MPI_BYTE, other(), kTag, MPI_COMM_WORLD, &request);
    MPI_Waitall(count, requests.data(), MPI_STATUSES_IGNORE);
    hear(kBack);
    return now_ns() - begin;
  }

  int bytes_;
  std::vector<char> out_, in_;
};

template <class Work>
Sample timed(Work work) {
  std::vector<double> times;
  for (int i = -3; i < trials; ++i) {
    const double begin = now_ns();
    work();
    if (i >= 0) times.push_back(now_ns() - begin);
  }
  return summary(times);
}

void print(const char* name, const Sample& sample) { std::printf(", \"%s\": [%.1f, %.1f]", name, sample.median, sample.spread); }

void measure(long bytes) {
  Pair pair(bytes);
  const Sample rtt = pair.rtt();
  const Sample send = pair.send_overhead();
  const Sample receive = pair.receive_overhead(2 * rtt.median + 2000);
  const Sample gap = pair.gap();
  if (me != 0) return;
  std::vector<double> a(static_cast<std::size_t>(bytes) / 8 + 1, 1.0), b(a);
  const int count = static_cast<int>(bytes / 8);
  const Sample reduce = timed([&] { MPI_Reduce_local(a.data(), b.data(), count, MPI_DOUBLE, MPI_SUM); });
  const Sample copy = timed([&] { std::memcpy(b.data(), a.data(), static_cast<std::size_t>(bytes)); asm volatile("" ::: "memory"); });
  std::printf("{\"bytes\": %ld", bytes);
  print("rtt", rtt), print("send", send), print("receive", receive), print("gap", gap), print("reduce", reduce), print("copy", copy);
  std::printf("}\n");
  std::fflush(stdout);
}

// Until the others have done.
void sleep_through() {
  MPI_Request request;
  MPI_Ibarrier(MPI_COMM_WORLD, &request);
  for (int done = 0; !done;) {
    MPI_Test(&request, &done, MPI_STATUS_IGNORE);
    const timespec nap{0, 2'000'000};
    nanosleep(&nap, nullptr);
  }
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &me);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  for (int i = 1; i + 1 < argc; i += 2) {
    if (std::strcmp(argv[i], "--peer") == 0) peer_rank = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--trials") == 0) trials = std::atoi(argv[i + 1]);
    if (std::strcmp(argv[i], "--max") == 0) most_bytes = std::atol(argv[i + 1]);
  }
  if (peer_rank < 1 || peer_rank >= size) {
    if (me == 0) std::fprintf(stderr, "--peer: there are ranks 1 to %d\n", size - 1);
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  if (me == 0 || me == peer_rank) {
    // Two lengths to every power of two, so that a change of protocol is found.
    for (long bytes = 8; bytes <= most_bytes; bytes *= 2) {
      measure(bytes);
      if (bytes * 3 / 2 <= most_bytes && bytes >= 64) measure(bytes * 3 / 2 / 8 * 8);
    }
  }
  sleep_through();
  MPI_Finalize();
}
