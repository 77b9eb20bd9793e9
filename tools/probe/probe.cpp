// SPDX-License-Identifier: BSD-3-Clause
// stretto-probe: tells the command-line tool what the library would find in this process. That is
// options, processors, and whether ranks can reach each other's memory here, by each way. It writes
// one JSON object to stdout. It runs the library's own code (src/base/options, src/sys), so
// `stretto info` and `stretto doctor` cannot disagree with the library.
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>
#include <vector>

#include "base/options.hpp"
#include "json_text.hpp"
#include "networks.hpp"
#include "sys/calls.hpp"
#include "sys/faults.hpp"
#include "sys/sys.hpp"

namespace {

using namespace stretto;

constexpr std::size_t kBytes = 1 << 20;

// ---- Options and processors ----

std::string options_json() {
  Options options;
  OptionsReport report{};
  (void)options_load(options, report);  // what is wrong is in the report
  std::string list;
  options_describe(
      options,
      [](void* context, const OptionDescription& o) {
        std::string& text = *static_cast<std::string*>(context);
        text += (text.empty() ? "" : ",\n    ");
        text += "{\"name\": " + quoted(o.name) + ", \"key\": " + quoted(o.key) + ", \"value\": " + quoted(o.value) +
                ", \"default\": " + quoted(o.default_value) + ", \"allowed\": " + quoted(o.allowed) +
                ", \"origin\": " + quoted(o.origin) + ", \"help\": " + quoted(o.help) + "}";
      },
      &list);
  std::string messages;
  for (int i = 0; i < report.count; i++) {
    const auto& message = report.messages[i];
    messages += (i ? ", " : "");
    messages += std::string("{\"error\": ") + (message.level == LogLevel::error ? "true" : "false") +
                ", \"text\": " + quoted(message.text) + "}";
  }
  return "\"options\": [\n    " + list + "],\n  \"option_messages\": [" + messages + "]";
}

std::string cpus_json() {
  const sys::Cpus cpus = sys::usable_cpus();
  char text[160];
  if (cpus.quota < 1e9) {
    std::snprintf(text, sizeof text, "\"cpus\": {\"usable\": %u, \"online\": %u, \"quota\": %.3f}", cpus.count,
                  cpus.online, cpus.quota);
  } else {
    std::snprintf(text, sizeof text, "\"cpus\": {\"usable\": %u, \"online\": %u, \"quota\": null}", cpus.count,
                  cpus.online);
  }
  return text;
}

// ---- Buffers that are guarded until their data are there ----

constexpr const char* kModes[] = {"none", "segv", "user", "kernel"};

// Some bytes leave a buffer and come back.
int check_move(const sys::Faults& faults) {
  void* const memory = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) return errno;
  const sys::Pages pages{static_cast<char*>(memory), kBytes};
  std::memset(pages.at, 1, pages.bytes);
  sys::Pages spare;
  std::size_t moved = 0;
  int error = sys::spare_map(faults, pages.bytes, pages.at, &spare);
  if (!error) error = sys::faults_guard(faults, pages, spare);
  if (!error) error = sys::faults_move_in(faults, pages.at, spare.at, pages.bytes, &moved);
  if (!error) error = sys::faults_release(faults, pages);
  sys::spare_unmap(faults, &spare);
  munmap(memory, kBytes);
  return error;
}

int check_calls() {
  constexpr int kAnswer = 4711;
  const sys::CallHandler answer = [](void*, const sys::CaughtCall&) { return sys::CallAnswer{false, kAnswer}; };
  if (const int error = sys::calls_install(answer, nullptr)) return error;
  int error = sys::calls_on();
  if (!error && getppid() != kAnswer) error = ENOTSUP;
  sys::calls_off();
  sys::calls_uninstall();
  return error;
}

// The same without userfaultfd, in this process of one thread.
int check_segv() {
  sys::Faults faults;
  const sys::FaultOwner owner{nullptr, [](void*, std::uint64_t) { return false; }};
  if (const int error = sys::faults_open_signal(owner, &faults)) return error;
  const int error = check_move(faults);
  sys::faults_close(&faults);
  return error;
}

std::string failure(int error) { return error ? quoted(std::strerror(error)) : "null"; }

std::string overlap_json() {
  sys::Faults faults;
  const int guard = sys::faults_open(sys::FaultMode::kernel, sys::Events::none, &faults);
  const int move = guard ? guard : check_move(faults);
  const int calls = check_calls(), segv = check_segv();
  std::string text = "\"overlap\": {\"guard\": " + quoted(kModes[static_cast<int>(faults.mode)]);
  text += ", \"guard_error\": " + failure(guard);
  text += std::string(", \"move\": ") + (move ? "false" : "true") + ", \"move_error\": " + failure(move);
  text += std::string(", \"calls\": ") + (calls ? "false" : "true") + ", \"calls_error\": " + failure(calls);
  text += std::string(", \"segv\": ") + (segv ? "false" : "true") + ", \"segv_error\": " + failure(segv);
  sys::faults_close(&faults);
  return text + "}";
}

// ---- Two processes that are not each other's parent, as ranks are ----

struct Peer {
  int pid;
  int descriptor;
  const char* address;  // of kWord in its memory
  std::uint64_t mailbox;
  int mailbox_error;
};

constexpr char kWord[] = "a voice enters before the one it answers has finished";

struct Check {
  const char* name;
  int error;
};

// Makes a memory file with the word in it, says so, and sends its descriptor when asked.
[[noreturn]] void play_peer(int say, int hear) {
  Peer me{sys::process_id(), -1, kWord, 0, 0};
  sys::Mailbox box;
  void* memory = nullptr;
  if (sys::memfd_open("stretto-probe", kBytes, &me.descriptor) == 0 &&
      sys::map_shared(me.descriptor, kBytes, sys::Access::read_write, &memory) == 0) {
    std::memcpy(memory, kWord, sizeof kWord);
  }
  (void)sys::random_bytes(&me.mailbox, sizeof me.mailbox);
  me.mailbox_error = sys::mailbox_open(me.mailbox, &box);
  if (write(say, &me, sizeof me) != sizeof me) _exit(1);
  std::uint64_t to = 0;
  if (read(hear, &to, sizeof to) == sizeof to && me.mailbox_error == 0) {
    (void)sys::mailbox_send(box, to, me.mailbox, me.descriptor);
  }
  while (read(hear, &to, sizeof to) > 0) {
  }  // stay until the others have looked
  _exit(0);
}

int check_memfd() {
  int fd = -1;
  void* memory = nullptr;
  if (int error = sys::memfd_open("stretto-probe", kBytes, &fd)) return error;
  int error = sys::memfd_reserve(fd, 0, kBytes);
  if (!error) error = sys::map_shared(fd, kBytes, sys::Access::read_write, &memory);
  if (!error) sys::unmap(memory, kBytes);
  sys::close_descriptor(fd);
  return error;
}

int holds_the_word(int fd) {
  void* memory = nullptr;
  int error = sys::map_shared(fd, kBytes, sys::Access::read_only, &memory);
  if (!error && std::memcmp(memory, kWord, sizeof kWord) != 0) error = EBADMSG;
  if (memory) sys::unmap(memory, kBytes);
  sys::close_descriptor(fd);
  return error;
}

int check_proc(const Peer& peer) {
  int fd = -1;
  if (int error = sys::peer_descriptor_open(peer.pid, peer.descriptor, &fd)) return error;
  return holds_the_word(fd);
}

int check_mailbox(const Peer& peer, int say) {
  std::uint64_t mine = 0, from = 0;
  sys::Mailbox box;
  int fd = -1;
  if (peer.mailbox_error) return peer.mailbox_error;
  if (int error = sys::random_bytes(&mine, sizeof mine)) return error;
  if (int error = sys::mailbox_open(mine, &box)) return error;
  if (write(say, &mine, sizeof mine) != sizeof mine) return EPIPE;
  const std::uint64_t end = sys::now_ns() + 2'000'000'000;
  int error = EAGAIN;
  while (error == EAGAIN && sys::now_ns() < end) {
    error = sys::mailbox_receive(box, &from, &fd);
    if (error == EAGAIN) sys::nap_ns(1'000'000);
  }
  sys::mailbox_close(&box);
  if (error) return error == EAGAIN ? ETIMEDOUT : error;
  return holds_the_word(fd);
}

int check_cma(const Peer& peer) {
  char word[sizeof kWord] = "";
  iovec local{word, sizeof word};
  iovec remote{const_cast<char*>(peer.address), sizeof word};
  const ssize_t got = process_vm_readv(peer.pid, &local, 1, &remote, 1, 0);
  if (got < 0) return errno;
  return std::memcmp(word, kWord, sizeof word) == 0 ? 0 : EBADMSG;
}

std::string checks_json(const std::vector<Check>& checks) {
  std::string text;
  for (const Check& check : checks) {
    text += text.empty() ? "" : ", ";
    text += "{\"name\": " + quoted(check.name) + ", \"ok\": " + (check.error ? "false" : "true") +
            ", \"error\": " + (check.error ? quoted(std::strerror(check.error)) : "null") + "}";
  }
  return "\"checks\": [" + text + "]";
}

// The checks run in a child of their own, a sibling of the peer. A parent may do more to its child
// than ranks may.
std::vector<Check> run_checks() {
  int from_peer[2], to_peer[2];
  if (pipe(from_peer) || pipe(to_peer)) return {{"pipe", errno}};
  const pid_t peer_pid = fork();
  if (peer_pid == 0) {
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(to_peer[1]);
    play_peer(from_peer[1], to_peer[0]);
  }
  close(from_peer[1]);
  int results[2];
  if (peer_pid < 0 || pipe(results)) return {{"fork", errno}};
  constexpr int kChecks = 4;
  int errors[kChecks] = {ECHILD, ECHILD, ECHILD, ECHILD};
  const pid_t tester = fork();
  if (tester == 0) {
    Peer peer{};
    if (read(from_peer[0], &peer, sizeof peer) == sizeof peer) {
      const int found[kChecks] = {check_memfd(), check_proc(peer), check_mailbox(peer, to_peer[1]), check_cma(peer)};
      if (write(results[1], found, sizeof found) != sizeof found) _exit(1);
    }
    _exit(0);
  }
  close(results[1]);
  if (read(results[0], errors, sizeof errors) != sizeof errors) errors[0] = EPIPE;
  close(to_peer[1]);
  while (wait(nullptr) > 0) {
  }
  return {{"memfd", errors[0]}, {"proc", errors[1]}, {"mailbox", errors[2]}, {"cma", errors[3]}};
}

}  // namespace

// `stretto-probe options` says what the library makes of its options, and tries nothing.
// `stretto-probe networks` loads a libfabric, in which code of others runs.
int main(int argc, char** argv) {
  if (argc == 2 && std::strcmp(argv[1], "options") == 0) {
    std::printf("{\n  %s\n}\n", options_json().c_str());
    return 0;
  }
  if (argc == 2 && std::strcmp(argv[1], "networks") == 0) {
    std::printf("{%s}\n", networks_json().c_str());
    return 0;
  }
  const std::vector<Check> checks = run_checks();
  std::printf("{\n  %s,\n  %s,\n  %s,\n  %s\n}\n", options_json().c_str(), cpus_json().c_str(), overlap_json().c_str(),
              checks_json(checks).c_str());
  return 0;
}
