// SPDX-License-Identifier: BSD-3-Clause
// The part of the operating system that Stretto uses. Only this folder makes system calls.
//
// Contract: functions that can fail return 0 or an errno value, and set their results only on
// success. They retry after EINTR. Descriptors are close-on-exec. Sizes are in bytes. No function
// prints, changes errno or keeps heap memory. In a build with STRETTO_FAULTS=1 every function can
// be made to fail (sys/fault.hpp).
#pragma once
#include <cstddef>
#include <cstdint>

namespace stretto::sys {

// ---- memory ----

// Makes a sparse, anonymous memory file of `bytes` bytes, sealed against shrinking. EFBIG:
// RLIMIT_FSIZE forbids it (without SIGXFSZ).
int memfd_open(const char* name, std::size_t bytes, int* fd);
// Backs [offset, offset + bytes) with pages now. A lack of memory is then ENOSPC or ENOMEM here,
// and not SIGBUS later. What was reserved before a failure stays reserved. EOPNOTSUPP: the file
// cannot be reserved, because it is no memory file. At the limit of a memory control group the
// kernel does not fail the call but kills a process (tried with v1, Linux 6.18). Callers therefore
// reserve little, and only when needed.
int memfd_reserve(int fd, std::uint64_t offset, std::uint64_t bytes);
// Opens a file of `bytes` zero bytes with pages behind them, and makes it if it does not exist.
// Other processes of this user share it by opening the same path. EPERM: it is another user's, or
// no plain file. The process that made it removes it.
int shared_file_open(const char* path, std::size_t bytes, int* fd);
int remove_file(const char* path);
// The size of a memory file that nobody can shrink; 0 if `fd` is no such file.
std::size_t memory_file_bytes(int fd);
// Reads so many bytes of a file, and no less. 0, or why not.
int file_read(int fd, std::uint64_t offset, void* to, std::size_t bytes);
// The file that a descriptor leads to. Programs that close descriptors they do not know may then
// get Stretto's numbers for files of their own.
struct FileId {
  std::uint64_t device = 0, inode = 0;
  bool operator==(const FileId&) const = default;
};
FileId file_id(int fd);  // zeros: no file
enum class Access : bool { read_only, read_write };
int map_shared(int fd, std::size_t bytes, Access access, void** address);
// Enters all pages of a writable shared mapping at once, so that the first store to each page costs
// no fault. Before Linux 5.14 the stores still fault.
void enter_pages(void* address, std::size_t bytes);
// Maps zero bytes for this process alone.
int map_private(std::size_t bytes, void** address);
// The same. A forked child does not have it: so nothing is copied that a network card writes to.
int map_unforked(std::size_t bytes, void** address);
void unmap(void* address, std::size_t bytes);
void close_descriptor(int fd);
std::uint64_t descriptor_limit();  // descriptors that a process may have
// Makes a second, longer mapping of what map_shared has mapped at `address`. The first one stays as
// it is.
int map_more(void* address, std::size_t bytes, void** more);
// Says whether core dumps contain these pages of a mapping from map_shared. At first they do. Pages
// that the range covers only partly are dumped.
void dump_pages(void* address, std::size_t bytes, bool dumped);
struct AddressSpace {
  std::uint64_t limit = ~std::uint64_t{0};  // RLIMIT_AS in bytes; ~0: none
  std::uint64_t left = ~std::uint64_t{0};   // what is left of it
};
AddressSpace address_space();

// ---- who and where ----
int process_id();
std::uint64_t start_time(int pid);  // field 22 of /proc/<pid>/stat, 0 when unknown; with the pid it names a process
// True if there is no such process, if it is a zombie whose threads have all ended, or if another
// process has its number now. Only the low 32 bits of `started` count; 0: unknown.
bool process_gone(int pid, std::uint64_t started);
std::uint64_t host_id();        // hash of the kernel's boot id: equal on one running kernel, 0 when unknown
std::uint64_t pid_namespace();  // inode of /proc/self/ns/pid, 0 when unknown
std::uint64_t user_id();
inline constexpr std::size_t kHostNameBytes = 256;
void host_name(char* name, std::size_t capacity);  // cut to `capacity`; "" when unknown
int random_bytes(void* target, std::size_t bytes);
void program_path(char* path, std::size_t capacity);  // of this process's file; "" when unknown
// The words with which this process was started, with blanks between them; cut to `capacity`.
void command_line(char* text, std::size_t capacity);
// `name` as an absolute path without links. ENAMETOOLONG: it is longer than `capacity`.
int real_path(const char* name, char* path, std::size_t capacity);

// ---- a peer's memory file ----

// Opens a peer's file through /proc, for reading only. It works between processes of one user and
// one PID namespace. The number may mean another file by now, so the caller checks what the mapping
// says.
int peer_descriptor_open(int pid, int descriptor, int* fd);

// A mailbox passes descriptors by SCM_RIGHTS over an abstract datagram socket, whose name follows
// from `id`. It works across PID namespaces of one network namespace. A message carries one
// descriptor and the sender's `id`. The kernel vouches for the sender's user. The receiver drops
// messages of other users and messages that are not Stretto's, and closes their descriptors.
// Nothing here blocks. Ids must be random: that keeps others from taking the name first.
struct Mailbox {
  int socket = -1;
};
// EADDRINUSE: another mailbox has this id.
int mailbox_open(std::uint64_t id, Mailbox* box);
// EAGAIN: the peer's queue is full; receive and try again. ECONNREFUSED: the peer has no mailbox.
int mailbox_send(const Mailbox& box, std::uint64_t to, std::uint64_t from, int descriptor);
// EAGAIN: there is no message. EMFILE: a message was lost, because this process has no descriptor
// number left.
int mailbox_receive(const Mailbox& box, std::uint64_t* from, int* fd);
void mailbox_close(Mailbox* box);

// ---- names that processes of a node leave for each other ----

// A name stands for a number. One process at a time has it, and all processes of its network
// namespace see it. It vanishes with the process. Nothing here blocks. Any user may take any name,
// so callers use numbers that others do not know.
struct Name {
  int socket = -1;
};
int name_open(Name* name);                              // it has no name yet
int name_take(const Name& name, std::uint64_t id);      // at most once for each `name`. EADDRINUSE: another has it
bool name_taken(const Name& asking, std::uint64_t id);  // by any process; `asking` has no name itself
void name_close(Name* name);                            // does nothing if `name` is not open

// ---- connections between hosts ----
// TCP over IPv4. Nothing here blocks: EAGAIN says that the time has not come.
struct HostAddress {
  std::uint32_t ip = 0, mask = 0;  // in network order
  [[nodiscard]] bool neighbours(const HostAddress& other) const {
    return mask == other.mask && (ip & mask) == (other.ip & mask);
  }
};
inline constexpr int kMostAddresses = 8;
// The addresses by which others may reach this host. They belong to interfaces that are up, without
// the loopback and without internal bridges. Returns how many there are.
int host_addresses(HostAddress (&addresses)[kMostAddresses]);
// Whether an interface is a bridge that leads only to virtual machines and containers of this host.
// Reads files below `root` (a fixture with sys/class/net).
bool is_internal_bridge(const char* root, const char* interface);
// Listens on this address alone, at a port that the system chooses (in network order).
int stream_listen(const HostAddress& at, int* listener, std::uint16_t* port);
int stream_accept(int listener, int* stream);
int stream_connect(const HostAddress& to, std::uint16_t port, int* stream);
// Whether the stream is connected by now. ECONNREFUSED, EHOSTUNREACH, ...: it never will be.
int stream_connected(int stream);
// Sends as much as it can at once of some pieces, one after the other, without the first `skipped`
// bytes of them. EPIPE, ECONNRESET: the peer is gone.
struct Piece {
  const void* data;
  std::size_t bytes;
};
inline constexpr int kMostPieces = 4;
int stream_send(int stream, const Piece* pieces, int count, std::size_t skipped, std::size_t* sent);
// Says when the system acknowledges messages to this side that are longer than a segment and
// shorter than kStreamMessageBytes. With `on_arrival` it does so as they arrive, from within the
// code that handles the arrival. Between namespaces of one machine that is the sender's call.
// Otherwise, and at first, it does so from within the call that receives them. Nothing depends on
// it.
inline constexpr int kStreamMessageBytes = 32 << 10;
void stream_acknowledge(int stream, bool on_arrival);
// The peer receives what was sent, and then the end. This side may still receive.
void stream_end(int stream);
// How many bytes can be received at once. At the end of the stream it is 0.
int stream_waiting(int stream, std::size_t* bytes);
// Receives at most `capacity` bytes. ECONNRESET: the peer is gone.
int stream_receive(int stream, void* target, std::size_t capacity, std::size_t* received);

// Receives into several places, one after the other. ECONNRESET: the peer is gone.
struct Place {
  void* data;
  std::size_t bytes;
};
int stream_receive_pieces(int stream, const Place* places, int count, std::size_t* received);
void stream_buffers(int stream, std::size_t bytes);  // what the system keeps of it, each way

// ---- a peer's memory ----

// Copies `bytes` bytes at `address` of process `pid` to `target` by process_vm_readv: all of them,
// or it returns an error. EPERM, ENOSYS, EACCES: the system forbids it (ptrace scope, seccomp, user
// namespaces). EFAULT: the bytes are not mapped there, or not readable. ESRCH: there is no such
// process.
int peer_memory_read(int pid, std::uint64_t address, void* target, std::size_t bytes);

// ---- processors ----
struct Cpus {
  unsigned count;           // processors this process may run on, by affinity
  std::uint64_t mask_hash;  // equal masks hash equal
  unsigned online;          // processors of the machine
  double quota;  // processors' worth of time that the cgroup grants (v1 or v2, tightest level); infinity: unlimited
};
Cpus usable_cpus();
// renews count and mask_hash by one system call: a program changes them when it binds itself
void affinity_again(Cpus* cpus);
// The granted time, read from files below `root` (a fixture with proc/self/cgroup,
// proc/self/mountinfo, sys/fs/cgroup/...).
double cgroup_quota(const char* root);

// The processors this process may run on, as "0-3,8"; cut to `capacity`, "" when unknown.
void processors_text(char* text, std::size_t capacity);

bool cpu_is_amd();
std::size_t l2_bytes();  // size of a processor's second-level cache; 0: unknown

// ---- barriers run on other processors ----

// One process pays for the fences of all (membarrier, global expedited). After barrier_everywhere()
// every processor that runs a thread of a registered process has passed a full memory barrier. All
// other processors passed one when they switched. Registering holds until the process executes
// another program. ENOSYS, EPERM, EINVAL: the system does not have it.
int barrier_register();
int barrier_everywhere();

// The domains of the machine that hold all processors of a process. Each has a number that no other
// domain of its kind has.
enum class CpuDomain : std::uint8_t { core, l2, l3, numa, package, count_ };
struct CpuPlace {
  int domains[static_cast<int>(CpuDomain::count_)] = {-1, -1, -1, -1, -1};  // -1: more than one, or unknown

  int& in(CpuDomain kind) { return domains[static_cast<int>(kind)]; }
};
CpuPlace cpu_place();
// The same for a set of processors. Reads files below `root` (a fixture with sys/devices/system).
CpuPlace cpu_place(const char* root, const std::uint64_t* mask, std::size_t words);

// The L3 cache of a process's first processor.
struct SharedCache {
  std::size_t bytes = 0;  // 0: unknown
  int processors = 0;     // processors that share it
};
SharedCache l3_cache();
// The same for a set of processors and files below `root`.
SharedCache l3_cache(const char* root, const std::uint64_t* mask, std::size_t words);

// The network cards nearest to a process. A card counts if it is in use and among the fastest of
// its machine. Where there are InfiniBand cards or the like, only these count. Cards are numbered
// by name, so all processes that see the same cards number them alike.
inline constexpr int kMostNics = 32;
struct NicPlace {
  std::uint32_t nearest = 0;  // a bit for each card, 0: none is known
  // 0: all processors of the process are local to the cards, 1: some, 2: none; 3: no card is known.
  std::uint32_t distance = 3;
};
NicPlace nic_place();
// The same for a set of processors. Reads files below `root` (a fixture with sys/class).
NicPlace nic_place(const char* root, const std::uint64_t* mask, std::size_t words);
// Whether the host has a card that reads remote memory, be it in use or not.
bool rdma_card_is_here();

// ---- files of the user's ----

// Reads at most `capacity` bytes. EFBIG: the file has more.
int file_read(const char* path, char* text, std::size_t capacity, std::size_t* bytes);
// Writes a file in place of the one that is there: readers see the old text or the new one. Makes
// its directory, but no other. Returns 0 or an errno value; then the old file is still there.
int file_replace(const char* path, const char* text, std::size_t bytes);
bool directory_searchable(const char* path);  // by this user
// Makes the folders above a file, where they are missing.
int folders_make(const char* path);
// Writes a file of the user's. Readers see the old text or the new one. What is no plain file, such
// as /dev/stdout, gets the text as it is.
int output_write(const char* path, const char* text, std::size_t bytes);

// Makes an empty file. EEXIST: there is one.
int file_claim(const char* path);

// A file that a process fills by stores into memory. What it has stored is in the file even if the
// process is killed. Makes a new file in the place of one that is there.
int growing_file_make(const char* path, int* fd);
// Maps [offset, offset + bytes) of it, with blocks of the file system behind it, so that no store
// fails. ENOSPC, EDQUOT, EFBIG: there is no room. A forked child does not have the mapping.
int growing_file_map(int fd, std::uint64_t offset, std::size_t bytes, void** address);

// ---- another program ----

// Starts the program at `path` in a session of its own, with all signals blocked. It is no child
// that wait() sees. Waits until it has closed its standard input, at most `ready_ms` milliseconds.
// It inherits descriptors that are not close-on-exec.
int program_start(const char* path, char* const* words, char* const* environment, int ready_ms);

// ---- standard error ----
void error_write(const char* text, std::size_t bytes);
// Ends the process by SIGABRT, which every launcher takes for a crash. No handler runs: that of
// Open MPI would write a stack of Stretto's functions behind the message that says why.
[[noreturn]] void end_by_abort();
// So many bytes have been written that the reader of the pipe, socket or terminal has not taken. A
// file has no reader: 0.
std::size_t error_untaken();

// ---- time and waiting ----
std::uint64_t now_ns();  // CLOCK_MONOTONIC
// A counter of the processor that runs evenly, or nanoseconds where there is none. Reading it takes
// a third of the time of now_ns().
inline std::uint64_t counter() {
#if defined(__x86_64__)
  return __builtin_ia32_rdtsc();
#elif defined(__aarch64__)
  std::uint64_t value;
  asm volatile("mrs %0, cntvct_el0" : "=r"(value));
  return value;
#else
  return now_ns();
#endif
}
std::uint64_t tick_ns();       // the same at the system's latest tick, which are 1 to 10 ms apart
#if defined(STRETTO_MODELLED)  // the processor is played: see tools/node
void hold_back();
void cpu_relax();
void fetch_to_write(const void* line);
#else
// No instruction after this begins before all instructions before it have ended.
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
// Fetches a line that this process will write soon.
inline void fetch_to_write(const void* line) {
#if defined(__x86_64__) || defined(__i386__)
  // __builtin_prefetch means a read without -mprfchw.
  asm volatile("prefetchw %0" ::"m"(*static_cast<const char*>(line)));
#else
  __builtin_prefetch(line, 1);
#endif
}
#endif
// What the calling thread has used since its start.
struct ThreadUse {
  std::uint64_t processor_ns = 0;
  std::uint64_t switches = 0;     // how often it has left its processor
  std::uint64_t preemptions = 0;  // of these: because another thread was to have it
};
ThreadUse thread_use();
std::uint64_t thread_processor_ns();  // the first of these, to the nanosecond
std::uint64_t real_ns();              // CLOCK_REALTIME
void thread_yield();
void nap_ns(std::uint64_t nanoseconds);  // a signal ends it early

}  // namespace stretto::sys
