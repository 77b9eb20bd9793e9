// SPDX-License-Identifier: BSD-3-Clause
// stretto-top: what the processes of a job on this machine are doing, read from their segments.
// `stretto top` shows it.
//
//   stretto-top list [PID...]
//       One JSON object: the processes that there are, and those that cannot be looked at.
//   stretto-top watch JOB INTERVAL_MS FRAMES [PID...]
//       A JSON object per line, at once and after each interval, until FRAMES have been written.
//       FRAMES 0: until all processes have ended. JOB 0: the processes PID..., which have no job
//       in common.
//
//   stretto-top stacks PID...
//       One JSON object: where the threads of these processes are, with Stretto or without.
//
// Programs pay nothing for being watched: they read no clocks. stretto-top finds out how long they
// are in collectives, and wait in them, by looking at them often. Its moments are independent of
// what the programs do. They are not in step with what programs repeat. Nor do they come only when
// a program gives up its processor.
#include <sched.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "model/json.hpp"
#include "observe/host_call_words.hpp"
#include "observe/observer.hpp"
#include "observe/standing.hpp"
#include "sys/sys.hpp"
#include "top/find.hpp"
#include "top/stacks.hpp"

namespace {

using namespace stretto;
using modelling::Json;
using observe::Attached;
using observe::Observer;

constexpr std::uint64_t kSampleNs = 5'000'000;      // between looks, on average
constexpr std::uint64_t kSliceNs = 100'000;         // the shortest that Linux grants
constexpr std::uint64_t kSearchNs = 2'000'000'000;  // between looks for ranks that have come later

// One process of a job, and what we have seen of it.
struct Watched {
  int pid = 0;
  std::uint64_t started = 0;
  Observer look;
  bool gone = false;
  shm::NoteCopy note;                                // of its latest call
  std::uint64_t changed_ns = 0;                      // when that call began or ended
  bool change_seen = false;                          // seen at that moment, not before
  std::uint64_t host_call = 0, host_changed_ns = 0;  // the call that the host serves, and since when it is open
  unsigned samples = 0, inside = 0, waiting = 0;     // since the last frame
};
using Processes = std::vector<std::unique_ptr<Watched>>;

struct Refused {
  int pid;
  Attached why;
};

// Attaches to what was found, if it is ours and new.
void adopt(const top::Found& found, std::uint64_t job, Processes& processes, std::vector<Refused>* refused) {
  for (const top::Candidate& candidate : found.candidates) {
    auto watched = std::make_unique<Watched>();
    watched->pid = candidate.pid;
    watched->started = sys::start_time(candidate.pid);
    const Attached attached = watched->look.attach(candidate.fd);
    if (attached == Attached::other_layout || attached == Attached::no_memory) {
      if (refused) refused->push_back({candidate.pid, attached});
    }
    if (attached != Attached::ok || (job != 0 && watched->look.process_info().job != job)) continue;
    // A child of a rank has its descriptors, too. The segment belongs to the rank, which is the
    // older process.
    const auto same =
        std::ranges::find_if(processes, [&](const auto& p) { return p->look.identity() == watched->look.identity(); });
    if (same == processes.end()) {
      processes.push_back(std::move(watched));
    } else if (watched->started < (*same)->started) {
      *same = std::move(watched);
    }
  }
  std::ranges::sort(processes, {}, [](const auto& p) { return std::pair(p->look.process_info().rank, p->pid); });
}

// ---- List ----

std::string hexadecimal(std::uint64_t number) {
  char text[24];
  std::snprintf(text, sizeof text, "%" PRIx64, number);
  return text;
}

void say_process(Json& json, const Watched& w) {
  const observe::ProcessInfo& p = w.look.process_info();
  json.open('{');
  json.key("pid").integer(w.pid);
  json.key("job").text(hexadecimal(p.job));
  json.key("rank").integer(static_cast<std::int64_t>(p.rank));
  json.key("ranks").integer(static_cast<std::int64_t>(p.ranks));
  json.key("version").text(p.version);
  json.key("host").text(p.host);
  json.key("left").boolean(w.look.left());
  json.key("command").text(top::command_of(w.pid));
  json.close('}');
}

int list(const std::vector<int>& pids) {
  Processes processes;
  std::vector<Refused> refused;
  const top::Found found = top::find_segments(pids);
  adopt(found, 0, processes, &refused);
  Json json;
  json.open('{');
  json.key("processes").open('[');
  for (const auto& w : processes) say_process(json, *w);
  json.close(']');
  json.key("refused").open('[');
  for (const Refused& r : refused) {
    json.open('{');
    json.key("pid").integer(r.pid);
    json.key("why").text(r.why == Attached::other_layout ? "its library is of another version of Stretto"
                                                         : "its memory cannot be mapped");
    json.close('}');
  }
  json.close(']');
  json.key("denied").open('[');
  for (const int pid : found.denied) json.integer(pid);
  json.close(']');
  json.close('}');
  std::putchar('\n');
  return 0;
}

// ---- Watch ----

bool waits_for_deferred(const Watched& w) {
  bool waits = false;
  shm::each_deferred(w.look.deferred(),
                     [&](const shm::DeferredCall& call) { waits = waits || call.wait != shm::DeferredWait::none; });
  return waits;
}

void sample(Watched& w, std::uint64_t now_ns) {
  const shm::HostCall host = w.gone ? shm::HostCall{} : host_call_now(w.look.host_calls());
  const std::uint64_t number = host.open ? host.number : 0;
  if (number != w.host_call) w.host_changed_ns = now_ns;
  w.host_call = number;
  shm::NoteCopy note;
  if (w.gone || !w.look.latest(&note)) return;
  ++w.samples;
  w.inside += note.open();
  w.waiting += (note.open() && w.look.waiting_since_ns() != 0) || waits_for_deferred(w);
  if (note.number == w.note.number && note.open() == w.note.open()) return;
  w.change_seen = w.note.number != 0;
  w.changed_ns = now_ns;
  w.note = note;
}

double seconds(std::uint64_t ns) { return static_cast<double>(ns) / 1e9; }

void say_call(Json& json, const Watched& w, std::uint64_t now_ns) {
  const shm::NoteCopy& note = w.note;
  const auto collective = note.call & 0xff;
  const std::uint64_t waiting_since = w.look.waiting_since_ns();
  const bool waits = note.open() && waiting_since != 0 && waiting_since < now_ns;
  // A call that is older than our first look is at least as old as its wait.
  const std::uint64_t since = waits ? std::min(w.changed_ns, waiting_since) : w.changed_ns;
  json.open('{');
  json.key("collective").text(collective < kCollectives ? kCollectiveNames[collective] : "?");
  json.key("by").text(note.generation == shm::kBySchedule ? "schedule" : is_elsewhere(note) ? "host" : "engine");
  json.key("open").boolean(note.open());
  json.key("communicator").text(hexadecimal(note.generation));
  json.key("number").integer(static_cast<std::int64_t>(note.call >> 8));
  json.key("root").integer(note.descriptor.root);
  json.key("bytes").integer(static_cast<std::int64_t>(note.descriptor.bytes));
  json.key("at").text(w.look.call_site(note).text);
  json.key("since_s").number(seconds(now_ns - since));
  json.key("seen").boolean(w.change_seen);
  json.key("waiting_s");
  if (waits)
    json.number(seconds(now_ns - waiting_since));
  else
    json.null();
  json.close('}');
}

// A call that the host serves. Null: the process is in none, or says nothing of them.
void say_host_call(Json& json, const Watched& w, const observe::Standing& standing, std::uint64_t now_ns) {
  const observe::Stand* const stand = standing.of(static_cast<int>(w.look.process_info().rank));
  if (stand == nullptr || !stand->waits()) return json.null();
  json.open('{');
  json.key("name").text(stand->call.name);
  json.key("words").text(observe::HostCallWords(stand->call, stand->modules()).text);
  json.key("at").text(observe::HostCallSite(stand->call, stand->modules()).text);
  json.key("since_s").number(stand->call.number == w.host_call ? seconds(now_ns - w.host_changed_ns) : 0);
  json.key("waits_for").open('[');
  standing.each_awaited(*stand, [&](int rank) { json.integer(rank); });
  json.close(']');
  json.close('}');
}

// Cycles of waits, and messages that do not fit.
void say_findings(Json& json, const observe::Standing& standing) {
  constexpr unsigned kMost = 64;
  json.key("cycles").open('[');
  for (const observe::Stand& stand : standing) {
    int ranks[kMost];
    const unsigned count = standing.cycle(stand.rank, ranks, kMost);
    if (count == 0 || ranks[0] != stand.rank) continue;
    json.open('[');
    for (unsigned i = 0; i < count; ++i) json.integer(ranks[i]);
    json.close(']');
  }
  json.close(']');
  json.key("contradictions").open('[');
  for (const observe::Stand& receiver : standing) {
    for (const observe::Stand& sender : standing) {
      const observe::ContradictionWords words(receiver, sender);
      if (words.text[0] != 0) json.text(words.text);
    }
  }
  json.close(']');
}

void say_parts(Json& json, const shm::DeferredCall& call, bool sends) {
  json.open('[');
  for (std::uint32_t i = 0; i < call.part_count; ++i) {
    const shm::DeferredCall::Part& part = call.parts[i];
    if (part.sends != sends || part.bytes == 0) continue;
    json.open('{');
    json.key("rank").integer(part.peer);
    json.key("bytes").integer(static_cast<std::int64_t>(part.bytes));
    json.close('}');
  }
  json.close(']');
}

void say_deferred(Json& json, const shm::DeferredCall& call, std::uint64_t now_ns) {
  constexpr const char* kWaits[] = {"", "touch", "system call", "function"};
  const auto age = [&](const char* key, std::uint64_t since_ns) {
    json.key(key);
    if (since_ns == 0) return json.null();
    json.number(since_ns < now_ns ? seconds(now_ns - since_ns) : 0);
  };
  json.open('{');
  json.key("collective").text(call.name);
  json.key("call").integer(static_cast<std::int64_t>(call.call));
  json.key("communicator").integer(static_cast<std::int64_t>(call.communicator));
  json.key("ranks").integer(call.ranks);
  json.key("at").text(call.place);
  age("began_s", call.began_ns);
  age("returned_s", call.returned_ns);
  json.key("waits").text(kWaits[static_cast<int>(call.wait)]);
  age("waits_s", call.waits_since_ns);
  json.key("waits_for").integer(call.waits_for);
  json.key("missing");
  say_parts(json, call, false);
  json.key("untaken");
  say_parts(json, call, true);
  json.close('}');
}

void say_tally(Json& json, const shm::Tally& tally) {
  json.open('{');
  json.key("calls").open('{');
  for (int p = 0; p < kPaths; ++p)
    json.key(kPathNames[p]).integer(static_cast<std::int64_t>(tally.calls[p].load_relaxed()));
  json.close('}');
  json.key("bytes").integer(static_cast<std::int64_t>(tally.bytes.load_relaxed()));
  json.key("ns").integer(static_cast<std::int64_t>(tally.ns.load_relaxed()));
  json.close('}');
}

bool is_used(const shm::Tally& tally) {
  return std::ranges::any_of(tally.calls, [](const auto& calls) { return calls.load_relaxed() != 0; });
}

void say_state(Json& json, const Watched& w, const observe::Standing& standing, std::uint64_t now_ns) {
  const observe::ProcessInfo& p = w.look.process_info();
  json.open('{');
  json.key("pid").integer(w.pid);
  json.key("rank").integer(static_cast<std::int64_t>(p.rank));
  json.key("ranks").integer(static_cast<std::int64_t>(p.ranks));
  json.key("state").text(w.look.left() ? "finished" : w.gone ? "gone" : "running");
  json.key("call");
  if (w.note.number != 0)
    say_call(json, w, now_ns);
  else
    json.null();
  json.key("host_call");
  say_host_call(json, w, standing, now_ns);
  json.key("samples").integer(w.samples);
  json.key("inside").integer(w.inside);
  json.key("waiting").integer(w.waiting);
  json.key("deferred").open('[');
  shm::each_deferred(w.look.deferred(), [&](const shm::DeferredCall& call) { say_deferred(json, call, now_ns); });
  json.close(']');
  json.key("collectives").open('{');
  for (int c = 0; c < kCollectives; ++c) {
    if (!is_used(w.look.tally(c))) continue;
    json.key(kCollectiveNames[c]);
    say_tally(json, w.look.tally(c));
  }
  json.close('}');
  json.close('}');
}

// Where each rank stands on the communicators of open calls. The reader sees from it which rank is
// missing.
void say_communicators(Json& json, const Processes& processes) {
  struct Member {
    int pid;
    observe::Membership membership;
  };
  std::map<std::uint64_t, std::vector<Member>> communicators;
  for (const auto& w : processes) {
    if (!w->gone && w->note.open() && !is_elsewhere(w->note)) communicators[w->note.generation];
  }
  for (const auto& w : processes) {
    w->look.communicators([&](const observe::Membership& m) {
      const auto there = communicators.find(m.generation);
      if (there != communicators.end()) there->second.push_back({w->pid, m});
    });
  }
  json.open('{');
  for (const auto& [generation, members] : communicators) {
    json.key(hexadecimal(generation).c_str()).open('[');
    for (const Member& m : members) {
      json.open('{');
      json.key("pid").integer(m.pid);
      json.key("rank").integer(m.membership.rank);
      json.key("size").integer(m.membership.members);
      json.key("begun").integer(static_cast<std::int64_t>(m.membership.begun));
      json.key("ended").integer(static_cast<std::int64_t>(m.membership.ended));
      json.close('}');
    }
    json.close(']');
  }
  json.close('}');
}

// False: no process reads any more.
bool write_frame(Processes& processes, std::uint64_t begin_ns, std::uint64_t now_ns) {
  Json json;
  json.open('{');
  json.key("interval_s").number(seconds(now_ns - begin_ns));
  json.key("processes").open('[');
  observe::Standing standing;
  for (const auto& w : processes) {
    w->gone = w->gone || sys::process_gone(w->pid, w->started);
    (void)standing.add(w->look.base(), w->look.bytes(), w->gone);
  }
  for (const auto& w : processes) {
    say_state(json, *w, standing, now_ns);
    w->samples = w->inside = w->waiting = 0;
  }
  json.close(']');
  say_findings(json, standing);
  json.key("communicators");
  say_communicators(json, processes);
  json.close('}');
  std::putchar('\n');
  return std::fflush(stdout) == 0;
}

bool any_left(const Processes& processes) {
  return std::ranges::any_of(processes, [](const auto& w) { return !w->gone && !w->look.left(); });
}

// Lets us run as soon as we wake, even if another process has the processor. Otherwise we would see
// ranks that share it with us mostly when they rest, and seldom in a collective. Real-time
// scheduling does this where it is permitted. A short slice needs no permission. On Linux 6.12 or
// later it does this where only the ranks run.
void run_promptly() {
  const sched_param least{.sched_priority = 1};
  if (sched_setscheduler(0, SCHED_FIFO, &least) == 0) return;
  struct {  // struct sched_attr, as Linux 3.14 has it
    std::uint32_t size, policy;
    std::uint64_t flags;
    std::int32_t nice;
    std::uint32_t priority;
    std::uint64_t runtime, deadline, period;
  } slice{};
  slice.size = sizeof slice;
  slice.nice = getpriority(PRIO_PROCESS, 0);
  slice.runtime = kSliceNs;
  (void)syscall(SYS_sched_setattr, 0, &slice, 0);
}

int watch(std::uint64_t job, std::uint64_t interval_ns, unsigned long frames, const std::vector<int>& pids) {
  Processes processes;
  adopt(top::find_segments(pids), job, processes, nullptr);
  std::uint64_t begin = sys::now_ns(), searched = begin;
  if (!write_frame(processes, begin, begin)) return 0;  // counts to begin with
  unsigned long written = 0;
  run_promptly();
  std::minstd_rand random(static_cast<std::minstd_rand::result_type>(begin));
  std::uniform_int_distribution<std::uint64_t> pause(1, 2 * std::min(kSampleNs, interval_ns));
  while ((frames == 0 || written < frames) && any_left(processes)) {
    const std::uint64_t now = sys::now_ns();
    for (const auto& w : processes) sample(*w, now);
    if (now - begin >= interval_ns) {
      if (!write_frame(processes, begin, now)) return 0;
      ++written;
      begin = now;
      if (job != 0 && now - searched >= kSearchNs && processes.size() < processes[0]->look.process_info().ranks) {
        adopt(top::find_segments({}), job, processes, nullptr);
        searched = now;
      }
    }
    sys::nap_ns(pause(random));
  }
  // How it ended.
  if (frames == 0 || written < frames) (void)write_frame(processes, begin, sys::now_ns());
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string verb = argc > 1 ? argv[1] : "";
  std::vector<int> pids;
  for (int i = verb == "watch" ? 5 : 2; i < argc; ++i) pids.push_back(std::atoi(argv[i]));
  if (verb == "list") return list(pids);
  if (verb == "stacks") return top::write_stacks(pids);
  if (verb == "watch" && argc >= 5) {
    return watch(std::strtoull(argv[2], nullptr, 16), std::strtoull(argv[3], nullptr, 10) * 1'000'000,
                 std::strtoul(argv[4], nullptr, 10), pids);
  }
  std::fprintf(stderr,
               "stretto-top list [PID...] | stretto-top watch JOB INTERVAL_MS FRAMES [PID...] | "
               "stretto-top stacks PID...\n");
  return 2;
}
