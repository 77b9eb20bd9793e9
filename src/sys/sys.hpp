// SPDX-License-Identifier: BSD-3-Clause
// The operating system, as much of it as Stretto uses. Only this folder makes system calls.
//
// Contract: functions that can fail return 0 or an errno value and set their results only on success; EINTR is retried
// inside. Descriptors are close-on-exec. Sizes are bytes. No function allocates from the heap, prints or changes errno.
// In a build with STRETTO_FAULTS=1 every one of them can be made to fail (sys/fault.hpp).
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::sys {

// ---- memory ----
// A sparse, anonymous, sealed-against-shrinking memory file of `bytes` bytes. EFBIG: RLIMIT_FSIZE forbids it (no
// SIGXFSZ).
int memfd_open(const char* name, std::size_t bytes, int* fd);
// Backs [offset, offset + bytes) with pages now, so that want of memory is ENOSPC or ENOMEM here and no SIGBUS later.
// What was reserved before a failure stays. EOPNOTSUPP: the file cannot be reserved (it is no memory file). Past the
// limit of a memory control group the kernel does not fail the call, it kills (tried: v1, Linux 6.18): reserve little,
// when needed.
int memfd_reserve(int fd, std::uint64_t offset, std::uint64_t bytes);
// A file of `bytes` zero bytes with pages behind them, to be shared with other processes of this user who open it at
// the same path; made if it is not there. EPERM: it is another user's, or no plain file. Whoever made it removes it.
int shared_file_open(const char* path, std::size_t bytes, int* fd);
int remove_file(const char* path);
// Of a memory file that nobody can shrink; 0: it is none.
std::size_t memory_file_bytes(int fd);
// Which file a descriptor leads to: programs that close descriptors they do not know get our numbers for files of their
// own.
struct FileId {
  std::uint64_t device = 0, inode = 0;
  bool operator==(const FileId&) const = default;
};
FileId file_id(int fd);  // zeros: to none
enum class Access : bool { read_only, read_write };
int map_shared(int fd, std::size_t bytes, Access access, void** address);
// Enters all pages of a shared mapping that may be written at once: the first store to each of them costs a fault
// otherwise. Where the system cannot (before Linux 5.14), they do.
void enter_pages(void* address, std::size_t bytes);
void unmap(void* address, std::size_t bytes);
void close_descriptor(int fd);
std::uint64_t descriptor_limit();  // so many a process may have
// A second, longer mapping of what map_shared has mapped at `address`. The first one stays as it
// is.
int map_more(void* address, std::size_t bytes, void** more);
// Whether core dumps have these pages of a mapping from map_shared, which they have at first. Pages
// that are only partly meant are dumped.
void dump_pages(void* address, std::size_t bytes, bool dumped);
struct AddressSpace {
  std::uint64_t limit = ~std::uint64_t{0};  // RLIMIT_AS, in bytes; ~0: none
  std::uint64_t left = ~std::uint64_t{0};   // of it
};
AddressSpace address_space();

// ---- who and where ----
int process_id();
std::uint64_t start_time(int pid);  // field 22 of /proc/<pid>/stat, 0 when unknown: with the pid it names a process
// No such process, or a zombie whose threads have all ended, or another that has its number now; `started`, of which
// the low 32 bits count, 0: unknown.
bool process_gone(int pid, std::uint64_t started);
std::uint64_t host_id();        // hash of the kernel's boot id: equal on one running kernel, 0 when unknown
std::uint64_t pid_namespace();  // inode of /proc/self/ns/pid, 0 when unknown
std::uint64_t user_id();
inline constexpr std::size_t kHostNameBytes = 256;
void host_name(char* name, std::size_t capacity);  // cut to capacity; "" when unknown
int random_bytes(void* target, std::size_t bytes);

// ---- a peer's memory file ----
// By /proc: works between processes of one user and one PID namespace. Opened for reading only. The number may mean
// another file by now: check what the mapping says.
int peer_descriptor_open(int pid, int descriptor, int* fd);

// By SCM_RIGHTS over an abstract datagram socket whose name follows from `id`; works across PID namespaces of one
// network namespace. Messages carry one descriptor and the sender's `id`; the kernel vouches for the sender's user;
// messages of other users, and messages that are not ours, are dropped and their descriptors closed. Nothing here
// blocks. Take random ids: they are what keeps others from taking the name first.
struct Mailbox {
  int socket = -1;
};
// EADDRINUSE: somebody has this id.
int mailbox_open(std::uint64_t id, Mailbox* box);
// EAGAIN: the peer's queue is full, receive and try again. ECONNREFUSED: the peer has no mailbox.
int mailbox_send(const Mailbox& box, std::uint64_t to, std::uint64_t from, int descriptor);
// EAGAIN: nothing there. EMFILE: a message was lost because this process has no descriptor number left.
int mailbox_receive(const Mailbox& box, std::uint64_t* from, int* fd);
void mailbox_close(Mailbox* box);

// ---- names that processes of a node leave for each other ----
// A name stands for a number. One process at a time has it, all processes of its network namespace
// see it, and it vanishes with the process. Nothing here blocks. Any user may take any name: use
// numbers that others do not know.
struct Name {
  int socket = -1;
};
int name_open(Name* name);                              // no name yet
int name_take(const Name& name, std::uint64_t id);      // once. EADDRINUSE: somebody has it
bool name_taken(const Name& asking, std::uint64_t id);  // by anybody; `asking` has no name itself
void name_close(Name* name);                            // nothing for one that is not open

// ---- connections between hosts ----
// TCP over IPv4. Nothing here blocks: EAGAIN says that the time has not come.
struct HostAddress {
  std::uint32_t ip = 0, mask = 0;  // in network order
  [[nodiscard]] bool neighbours(const HostAddress& other) const {
    return mask == other.mask && (ip & mask) == (other.ip & mask);
  }
};
inline constexpr int kMostAddresses = 8;
// Those by which others may reach this host: of interfaces that are up, without the loopback and without internal
// bridges. Returns how many.
int host_addresses(HostAddress (&addresses)[kMostAddresses]);
// Whether an interface is a bridge that leads to nothing but virtual machines and containers of this host; by files
// below `root` (a fixture with sys/class/net).
bool is_internal_bridge(const char* root, const char* interface);
// Listens on this address alone, at a port of the system's choice (in network order).
int stream_listen(const HostAddress& at, int* listener, std::uint16_t* port);
int stream_accept(int listener, int* stream);
int stream_connect(const HostAddress& to, std::uint16_t port, int* stream);
// Whether the stream is connected by now. ECONNREFUSED, EHOSTUNREACH, ...: it never will be.
int stream_connected(int stream);
// Sends what goes at once of some pieces, one after the other, all but the first `skipped` bytes of them. EPIPE,
// ECONNRESET: the peer is gone.
struct Piece {
  const void* data;
  std::size_t bytes;
};
inline constexpr int kMostPieces = 4;
int stream_send(int stream, const Piece* pieces, int count, std::size_t skipped, std::size_t* sent);
// When the system acknowledges messages to this side that are more than a segment, and less than so many bytes: as they
// arrive, from within whatever handles that (between namespaces of one machine, their sender's call), or from within
// the call that receives them, as it is at first. Nothing depends on it.
inline constexpr int kStreamMessageBytes = 32 << 10;
void stream_acknowledge(int stream, bool on_arrival);
// The peer receives what was sent, and then the end; this side may still receive.
void stream_end(int stream);
// How many bytes can be received at once. An end of the stream is none.
int stream_waiting(int stream, std::size_t* bytes);
// At most `capacity` bytes. ECONNRESET: the peer is gone.
int stream_receive(int stream, void* target, std::size_t capacity, std::size_t* received);

// ---- a peer's memory ----
// Copies `bytes` bytes at `address` of process `pid` to `target`: process_vm_readv, all or an error. EPERM, ENOSYS,
// EACCES: forbidden here (ptrace scope, seccomp, user namespaces); EFAULT: not mapped there, or not readable; ESRCH:
// nobody there.
int peer_memory_read(int pid, std::uint64_t address, void* target, std::size_t bytes);

// ---- processors ----
struct Cpus {
  unsigned count;           // processors this process may run on, by affinity
  std::uint64_t mask_hash;  // equal masks hash equal
  unsigned online;          // processors of the machine
  double quota;  // processors' worth of time the cgroup grants (v1 or v2, tightest level), infinity if unlimited
};
Cpus usable_cpus();
void affinity_again(Cpus* cpus);  // count and mask_hash, which a program changes when it binds itself: one system call
// The same, reading files below `root` (a fixture with proc/self/cgroup, proc/self/mountinfo, sys/fs/cgroup/...).
double cgroup_quota(const char* root);

bool cpu_is_amd();
std::size_t l2_bytes();  // of a processor's second-level cache; 0: unknown

// ---- barriers run on other processors ----
// One process pays for the fences of all (membarrier, global expedited): after barrier_everywhere() every processor
// that runs a thread of a registered process has gone through a full memory barrier, and all others did when they
// switched. Registering holds for the process until it executes another program. ENOSYS, EPERM, EINVAL: not here.
int barrier_register();
int barrier_everywhere();

// The domains of the machine that hold all processors of a process, each by a number that no other domain of its kind
// has.
enum class CpuDomain : std::uint8_t { core, l2, l3, numa, package, count_ };
struct CpuPlace {
  int domains[static_cast<int>(CpuDomain::count_)] = {-1, -1, -1, -1, -1};  // -1: more than one, or unknown

  int& in(CpuDomain kind) { return domains[static_cast<int>(kind)]; }
};
CpuPlace cpu_place();
// The same for a set of processors, reading files below `root` (a fixture with sys/devices/system).
CpuPlace cpu_place(const char* root, const std::uint64_t* mask, std::size_t words);

// The L3 of the first processor of a process.
struct SharedCache {
  std::size_t bytes = 0;  // 0: unknown
  int processors = 0;     // that share it
};
SharedCache l3_cache();
// The same as above.
SharedCache l3_cache(const char* root, const std::uint64_t* mask, std::size_t words);

// The network cards nearest to a process. Those that count are in use, and the fastest of their machine; InfiniBand's
// and its kin's, where there are any. They are numbered by name, so all processes that see the same cards number them
// alike.
inline constexpr int kMostNics = 32;
struct NicPlace {
  std::uint32_t nearest = 0;  // a bit for each, 0: none is known
  std::uint32_t distance =
      3;  // 0: all of the process' processors are local to them, 1: some, 2: none; 3: none is known
};
NicPlace nic_place();
// The same for a set of processors, reading files below `root` (a fixture with sys/class).
NicPlace nic_place(const char* root, const std::uint64_t* mask, std::size_t words);

// ---- files of the user's ----
// At most `capacity` bytes. EFBIG: there are more.
int file_read(const char* path, char* text, std::size_t capacity, std::size_t* bytes);

// ---- time and waiting ----
std::uint64_t now_ns();  // CLOCK_MONOTONIC
// Nothing that follows begins before all that precedes has ended.
inline void hold_back() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_lfence();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");
#endif
}
inline void cpu_relax() {
#if defined(__x86_64__) || defined(__i386__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("isb" ::: "memory");  // `yield` is a no-op on most cores; `isb` costs about what x86's pause does
#else
  asm volatile("" ::: "memory");
#endif
}
// This process will write that line soon.
inline void fetch_to_write(const void* line) {
#if defined(__x86_64__) || defined(__i386__)
  asm volatile(
      "prefetchw %0" ::"m"(*static_cast<const char*>(line)));  // __builtin_prefetch means a read without -mprfchw
#else
  __builtin_prefetch(line, 1);
#endif
}
void thread_yield();
void nap_ns(std::uint64_t nanoseconds);  // a signal ends it early

}  // namespace stretto::sys
