// SPDX-License-Identifier: BSD-3-Clause
#include "overlap/call_table.hpp"

#include <array>
#include <csignal>
#include <ctime>

#include "sys/call_layouts.hpp"

namespace stretto::overlap {
namespace {

using OperandKind = Operand::Kind;

constexpr Operand bytes(std::uint8_t at, std::uint8_t by) { return {OperandKind::bytes, at, by, 1}; }
constexpr Operand array(std::uint8_t at, std::uint8_t by, std::size_t size) {
  return {OperandKind::bytes, at, by, static_cast<std::uint16_t>(size)};
}
constexpr Operand fixed(std::uint8_t at, std::size_t size) {
  return {OperandKind::fixed, at, 0, static_cast<std::uint16_t>(size)};
}
constexpr Operand by_kind(OperandKind kind, std::uint8_t at, std::uint8_t by = 0) { return {kind, at, by, 1}; }
constexpr Operand counted(std::uint8_t at, std::uint8_t by) { return by_kind(OperandKind::counted, at, by); }
constexpr Operand string(std::uint8_t at) { return by_kind(OperandKind::string, at); }
constexpr Operand bits(std::uint8_t at, std::uint8_t by) { return by_kind(OperandKind::bits, at, by); }
constexpr Operand vector(std::uint8_t at, std::uint8_t by) { return by_kind(OperandKind::vector, at, by); }
constexpr Operand message(std::uint8_t at) { return by_kind(OperandKind::message, at); }
constexpr Operand messages(std::uint8_t at, std::uint8_t by) { return by_kind(OperandKind::messages, at, by); }
constexpr Operand mask(std::uint8_t at) { return by_kind(OperandKind::mask, at); }
constexpr Operand mapping(std::uint8_t at, std::uint8_t by) { return by_kind(OperandKind::mapping, at, by); }

constexpr std::size_t kTime = sizeof(timespec), kTwoTimes = 2 * sizeof(timespec), kOffset = sizeof(std::int64_t);
constexpr std::size_t kUsage = sizeof(rusage), kLimit = sizeof(rlimit), kId = 4, kMaskBytes = 8, kQueue = 64;
constexpr std::size_t kSignal = sizeof(siginfo_t), kClock = 208, kStatx = 256, kCapabilities = 24;

// ---- simple: they may run within a signal handler, and touch only what stands here ----

constexpr CallRow kSimple[] = {
    // data
    {SYS_read, {bytes(1, 2)}},
    {SYS_write, {bytes(1, 2)}},
    {SYS_pread64, {bytes(1, 2)}},
    {SYS_pwrite64, {bytes(1, 2)}},
    {SYS_readv, {vector(1, 2)}},
    {SYS_writev, {vector(1, 2)}},
    {SYS_preadv, {vector(1, 2)}},
    {SYS_pwritev, {vector(1, 2)}},
    {SYS_preadv2, {vector(1, 2)}},
    {SYS_pwritev2, {vector(1, 2)}},
    {SYS_vmsplice, {vector(1, 2)}},
    {SYS_process_vm_readv, {vector(1, 2), vector(3, 4)}},
    {SYS_process_vm_writev, {vector(1, 2), vector(3, 4)}},
    {SYS_sendto, {bytes(1, 2), bytes(4, 5)}},
    {SYS_recvfrom, {bytes(1, 2), counted(4, 5)}},
    {SYS_sendmsg, {message(1)}},
    {SYS_recvmsg, {message(1)}},
    {SYS_sendmmsg, {messages(1, 2)}},
    {SYS_recvmmsg, {messages(1, 2), fixed(4, kTime)}},
    {SYS_sendfile, {fixed(2, kOffset)}},
    {SYS_splice, {fixed(1, kOffset), fixed(3, kOffset)}},
    {SYS_copy_file_range, {fixed(1, kOffset), fixed(3, kOffset)}},
    {SYS_mq_timedsend, {bytes(1, 2), fixed(4, kTime)}},
    {SYS_mq_timedreceive, {bytes(1, 2), fixed(3, kId), fixed(4, kTime)}},

    // sockets
    {SYS_socketpair, {fixed(3, 2 * sizeof(int))}},
    {SYS_bind, {bytes(1, 2)}},
    {SYS_connect, {bytes(1, 2)}},
    {SYS_accept, {counted(1, 2)}},
    {SYS_accept4, {counted(1, 2)}},
    {SYS_getsockname, {counted(1, 2)}},
    {SYS_getpeername, {counted(1, 2)}},
    {SYS_setsockopt, {bytes(3, 4)}},
    {SYS_getsockopt, {counted(3, 4)}},

    // descriptors
    {SYS_pipe2, {fixed(0, 2 * sizeof(int))}},
    {SYS_fcntl, {by_kind(OperandKind::file, 2, 1)}},
    {SYS_ioctl, {by_kind(OperandKind::control, 2, 1)}},
    {SYS_fstat, {fixed(1, sizeof(struct stat))}},
    {SYS_fstatfs, {fixed(1, sizeof(struct statfs))}},
    {SYS_getdents64, {bytes(1, 2)}},
    {SYS_fsetxattr, {string(1), bytes(2, 3)}},
    {SYS_fgetxattr, {string(1), bytes(2, 3)}},
    {SYS_flistxattr, {bytes(1, 2)}},
    {SYS_fremovexattr, {string(1)}},
    {SYS_epoll_ctl, {fixed(3, sizeof(epoll_event))}},
    {SYS_epoll_pwait, {array(1, 2, sizeof(epoll_event)), mask(4)}},
    {SYS_epoll_pwait2, {array(1, 2, sizeof(epoll_event)), fixed(3, kTime), mask(4)}},
    {SYS_ppoll, {array(0, 1, sizeof(pollfd)), fixed(2, kTime), mask(3)}},
    {SYS_pselect6, {bits(1, 0), bits(2, 0), bits(3, 0), fixed(4, kTime), by_kind(OperandKind::mask_pair, 5)}},
    {SYS_signalfd4, {fixed(1, kMaskBytes)}},
    {SYS_timerfd_settime, {fixed(2, kTwoTimes), fixed(3, kTwoTimes)}},
    {SYS_timerfd_gettime, {fixed(1, kTwoTimes)}},
    {SYS_inotify_add_watch, {string(1)}},
    {SYS_memfd_create, {string(0)}},
    {SYS_mq_open, {string(0), fixed(3, kQueue)}},
    {SYS_mq_unlink, {string(0)}},
    {SYS_mq_getsetattr, {fixed(1, kQueue), fixed(2, kQueue)}},
    {SYS_semop, {array(1, 2, 6)}},
    {SYS_semtimedop, {array(1, 2, 6), fixed(3, kTime)}},

    // files by their names
    {SYS_openat, {string(1)}},
    {SYS_openat2, {string(1), bytes(2, 3)}},
    {SYS_newfstatat, {string(1), fixed(2, sizeof(struct stat))}},
    {SYS_statx, {string(1), fixed(4, kStatx)}},
    {SYS_statfs, {string(0), fixed(1, sizeof(struct statfs))}},
    {SYS_faccessat, {string(1)}},
    {SYS_faccessat2, {string(1)}},
    {SYS_readlinkat, {string(1), bytes(2, 3)}},
    {SYS_mkdirat, {string(1)}},
    {SYS_mknodat, {string(1)}},
    {SYS_unlinkat, {string(1)}},
    {SYS_renameat2, {string(1), string(3)}},
    {SYS_linkat, {string(1), string(3)}},
    {SYS_symlinkat, {string(0), string(2)}},
    {SYS_fchmodat, {string(1)}},
    {SYS_fchmodat2, {string(1)}},
    {SYS_fchownat, {string(1)}},
    {SYS_utimensat, {string(1), fixed(2, kTwoTimes)}},
    {SYS_truncate, {string(0)}},
    {SYS_chdir, {string(0)}},
    {SYS_getcwd, {bytes(0, 1)}},
    {SYS_setxattr, {string(0), string(1), bytes(2, 3)}},
    {SYS_lsetxattr, {string(0), string(1), bytes(2, 3)}},
    {SYS_getxattr, {string(0), string(1), bytes(2, 3)}},
    {SYS_lgetxattr, {string(0), string(1), bytes(2, 3)}},
    {SYS_listxattr, {string(0), bytes(1, 2)}},
    {SYS_llistxattr, {string(0), bytes(1, 2)}},
    {SYS_removexattr, {string(0), string(1)}},
    {SYS_lremovexattr, {string(0), string(1)}},

    // time
    {SYS_futex, {by_kind(OperandKind::futex, 0, 1)}},
    {SYS_nanosleep, {fixed(0, kTime), fixed(1, kTime)}},
    {SYS_clock_nanosleep, {fixed(2, kTime), fixed(3, kTime)}},
    {SYS_clock_gettime, {fixed(1, kTime)}},
    {SYS_clock_getres, {fixed(1, kTime)}},
    {SYS_clock_settime, {fixed(1, kTime)}},
    {SYS_clock_adjtime, {fixed(1, kClock)}},
    {SYS_adjtimex, {fixed(0, kClock)}},
    {SYS_gettimeofday, {fixed(0, sizeof(timeval)), fixed(1, 8)}},
    {SYS_times, {fixed(0, sizeof(tms))}},
    {SYS_getitimer, {fixed(1, kTwoTimes)}},
    {SYS_setitimer, {fixed(1, kTwoTimes), fixed(2, kTwoTimes)}},
    {SYS_timer_create, {fixed(1, sizeof(sigevent)), fixed(2, kId)}},
    {SYS_timer_settime, {fixed(2, kTwoTimes), fixed(3, kTwoTimes)}},
    {SYS_timer_gettime, {fixed(1, kTwoTimes)}},

    // this process and the system
    {SYS_getrandom, {bytes(0, 1)}},
    {SYS_getrusage, {fixed(1, kUsage)}},
    {SYS_getrlimit, {fixed(1, kLimit)}},
    {SYS_setrlimit, {fixed(1, kLimit)}},
    {SYS_prlimit64, {fixed(2, kLimit), fixed(3, kLimit)}},
    {SYS_wait4, {fixed(1, kId), fixed(3, kUsage)}},
    {SYS_waitid, {fixed(2, kSignal), fixed(4, kUsage)}},
    {SYS_sysinfo, {fixed(0, sizeof(struct sysinfo))}},
    {SYS_uname, {fixed(0, sizeof(utsname))}},
    {SYS_getcpu, {fixed(0, kId), fixed(1, kId)}},
    {SYS_getgroups, {array(1, 0, kId)}},
    {SYS_getresuid, {fixed(0, kId), fixed(1, kId), fixed(2, kId)}},
    {SYS_getresgid, {fixed(0, kId), fixed(1, kId), fixed(2, kId)}},
    {SYS_capget, {fixed(0, 8), fixed(1, kCapabilities)}},
    {SYS_sched_getaffinity, {bytes(2, 1)}},
    {SYS_sched_setaffinity, {bytes(2, 1)}},
    {SYS_sched_getparam, {fixed(1, kId)}},
    {SYS_sched_setparam, {fixed(1, kId)}},
    {SYS_sched_setscheduler, {fixed(2, kId)}},
    {SYS_sched_getattr, {bytes(1, 2)}},
    {SYS_sched_rr_get_interval, {fixed(1, kTime)}},

    // signals
    {SYS_rt_sigprocmask, {by_kind(OperandKind::new_mask, 1, 0), fixed(2, kMaskBytes)}},
    {SYS_rt_sigaction, {by_kind(OperandKind::action, 1, 0), fixed(2, 4 * sizeof(long))}},
    {SYS_rt_sigpending, {fixed(0, kMaskBytes)}},
    {SYS_rt_sigsuspend, {mask(0)}},
    {SYS_rt_sigtimedwait, {fixed(0, kMaskBytes), fixed(1, kSignal), fixed(2, kTime)}},
    {SYS_rt_sigqueueinfo, {fixed(2, kSignal)}},
    {SYS_rt_tgsigqueueinfo, {fixed(3, kSignal)}},
    {SYS_pidfd_send_signal, {fixed(2, kSignal)}},
    {SYS_sigaltstack, {by_kind(OperandKind::alternate, 0), fixed(1, sizeof(stack_t))}},

    // memory
    {SYS_mincore, {by_kind(OperandKind::pages, 2, 1)}},
#if defined(__x86_64__)
    {SYS_poll, {array(0, 1, sizeof(pollfd))}},
    {SYS_select, {bits(1, 0), bits(2, 0), bits(3, 0), fixed(4, sizeof(timeval))}},
    {SYS_epoll_wait, {array(1, 2, sizeof(epoll_event))}},
    {SYS_pipe, {fixed(0, 2 * sizeof(int))}},
    {SYS_getdents, {bytes(1, 2)}},
    {SYS_signalfd, {fixed(1, kMaskBytes)}},
    {SYS_open, {string(0)}},
    {SYS_creat, {string(0)}},
    {SYS_stat, {string(0), fixed(1, sizeof(struct stat))}},
    {SYS_lstat, {string(0), fixed(1, sizeof(struct stat))}},
    {SYS_access, {string(0)}},
    {SYS_readlink, {string(0), bytes(1, 2)}},
    {SYS_mkdir, {string(0)}},
    {SYS_rmdir, {string(0)}},
    {SYS_mknod, {string(0)}},
    {SYS_unlink, {string(0)}},
    {SYS_link, {string(0), string(1)}},
    {SYS_symlink, {string(0), string(1)}},
    {SYS_chmod, {string(0)}},
    {SYS_chown, {string(0)}},
    {SYS_lchown, {string(0)}},
    {SYS_utime, {string(0), fixed(1, 2 * sizeof(long))}},
    {SYS_utimes, {string(0), fixed(1, kTwoTimes)}},
    {SYS_futimesat, {string(1), fixed(2, kTwoTimes)}},
    {SYS_rename, {string(0), string(1)}},
    {SYS_time, {fixed(0, sizeof(time_t))}},
#endif
#if defined(SYS_renameat)
    {SYS_renameat, {string(1), string(3)}},
#endif
};

// ---- events of mappings ----

constexpr CallRow kMappings[] = {
    {SYS_brk, {by_kind(OperandKind::heap_end, 0)}},
    {SYS_mmap, {mapping(0, 1)}},
    {SYS_munmap, {mapping(0, 1)}},
    {SYS_mremap, {mapping(0, 1), mapping(4, 2)}},
    {SYS_mprotect, {mapping(0, 1)}},
    {SYS_pkey_mprotect, {mapping(0, 1)}},
    {SYS_madvise, {by_kind(OperandKind::advice, 0, 1)}},
};

// ---- calls that touch no memory of the program ----

// clang-format off
constexpr long kNothing[] = {
    SYS_socket, SYS_listen, SYS_shutdown, SYS_close, SYS_close_range, SYS_dup, SYS_dup3, SYS_lseek, SYS_fsync,
    SYS_fdatasync, SYS_sync, SYS_syncfs, SYS_sync_file_range, SYS_ftruncate, SYS_fallocate, SYS_fadvise64,
    SYS_readahead, SYS_flock, SYS_tee, SYS_fchmod, SYS_fchown, SYS_fchdir, SYS_umask, SYS_eventfd2, SYS_epoll_create1,
    SYS_timerfd_create, SYS_inotify_init1, SYS_inotify_rm_watch, SYS_memfd_secret, SYS_pidfd_open, SYS_pidfd_getfd,
    SYS_semget, SYS_shmget, SYS_msgget, SYS_sched_yield, SYS_sched_getscheduler, SYS_sched_get_priority_max,
    SYS_sched_get_priority_min, SYS_getpriority, SYS_setpriority, SYS_ioprio_get, SYS_ioprio_set,
    SYS_timer_getoverrun, SYS_timer_delete, SYS_getpid, SYS_gettid, SYS_getppid, SYS_getuid, SYS_geteuid, SYS_getgid,
    SYS_getegid, SYS_getpgid, SYS_setpgid, SYS_getsid, SYS_setsid, SYS_setuid, SYS_setgid, SYS_setreuid, SYS_setregid,
    SYS_setresuid, SYS_setresgid, SYS_setfsuid, SYS_setfsgid, SYS_personality, SYS_kill, SYS_tkill, SYS_tgkill,
    SYS_membarrier, SYS_pkey_alloc, SYS_pkey_free, SYS_restart_syscall,
#if defined(__x86_64__)
    SYS_dup2, SYS_eventfd, SYS_epoll_create, SYS_inotify_init, SYS_alarm, SYS_pause, SYS_getpgrp,
#endif
};
// clang-format on

// ---- calls before which all data must be there ----

// clang-format off
constexpr long kEverything[] = {
    // threads, processes, and what the return from a handler undoes
    SYS_clone, SYS_clone3, SYS_execve, SYS_execveat, SYS_exit, SYS_exit_group, SYS_rt_sigreturn, SYS_set_tid_address,
    SYS_set_robust_list, SYS_get_robust_list, SYS_rseq, SYS_prctl, SYS_unshare, SYS_setns, SYS_seccomp, SYS_ptrace,
    // other memory of the process
    SYS_mlock, SYS_mlock2, SYS_mlockall, SYS_munlock, SYS_munlockall, SYS_msync, SYS_mbind, SYS_set_mempolicy,
    SYS_get_mempolicy, SYS_set_mempolicy_home_node, SYS_move_pages, SYS_migrate_pages, SYS_remap_file_pages,
    SYS_mseal, SYS_map_shadow_stack, SYS_process_madvise, SYS_process_mrelease, SYS_shmat, SYS_shmdt, SYS_shmctl,
    SYS_userfaultfd,
    // work that goes on behind the call
    SYS_io_setup, SYS_io_destroy, SYS_io_submit, SYS_io_cancel, SYS_io_getevents, SYS_io_pgetevents,
    SYS_io_uring_setup, SYS_io_uring_enter, SYS_io_uring_register,
    // rare, or with memory that arguments do not name
    SYS_futex_waitv, SYS_futex_wake, SYS_futex_wait, SYS_futex_requeue, SYS_semctl, SYS_msgsnd, SYS_msgrcv,
    SYS_msgctl, SYS_mq_notify, SYS_sched_setattr, SYS_capset, SYS_setgroups, SYS_acct, SYS_add_key, SYS_request_key,
    SYS_keyctl, SYS_bpf, SYS_cachestat, SYS_chroot, SYS_delete_module, SYS_init_module, SYS_finit_module,
    SYS_fanotify_init, SYS_fanotify_mark, SYS_file_getattr, SYS_file_setattr, SYS_fsconfig, SYS_fsmount, SYS_fsopen,
    SYS_fspick, SYS_setxattrat, SYS_getxattrat, SYS_listxattrat, SYS_removexattrat, SYS_kcmp, SYS_kexec_load,
    SYS_landlock_add_rule, SYS_landlock_create_ruleset, SYS_landlock_restrict_self, SYS_listmount, SYS_listns,
    SYS_lookup_dcookie, SYS_lsm_get_self_attr, SYS_lsm_list_modules, SYS_lsm_set_self_attr, SYS_mount,
    SYS_mount_setattr, SYS_move_mount, SYS_name_to_handle_at, SYS_nfsservctl, SYS_open_by_handle_at, SYS_open_tree,
    SYS_open_tree_attr, SYS_perf_event_open, SYS_pivot_root, SYS_quotactl, SYS_quotactl_fd, SYS_reboot,
    SYS_setdomainname, SYS_sethostname, SYS_settimeofday, SYS_statmount, SYS_swapoff, SYS_swapon, SYS_syslog,
    SYS_umount2, SYS_vhangup,
#if defined(SYS_kexec_file_load)
    SYS_kexec_file_load,
#endif
#if defined(__x86_64__)
    SYS_fork, SYS_vfork, SYS_arch_prctl, SYS_modify_ldt, SYS_set_thread_area, SYS_get_thread_area, SYS_uretprobe,
    SYS_uprobe, SYS_uselib, SYS_ustat, SYS_sysfs, SYS__sysctl, SYS_iopl, SYS_ioperm, SYS_create_module,
    SYS_get_kernel_syms, SYS_query_module, SYS_getpmsg, SYS_putpmsg, SYS_afs_syscall, SYS_tuxcall, SYS_security,
    SYS_epoll_ctl_old, SYS_epoll_wait_old, SYS_vserver,
#endif
};
// clang-format on

// ---- by number ----

constexpr std::size_t kNumbers = 512;

struct Table {
  std::array<CallRow, kNumbers> rows = {};
  std::array<bool, kNumbers> known = {};
  bool twice = false;  // a call stands in two lists
  constexpr void add(const CallRow& row) {
    const auto i = static_cast<std::size_t>(row.number);
    twice = twice || known[i];
    known[i] = true;
    rows[i] = row;
  }
};

constexpr Table all_calls() {
  Table made;
  for (const CallRow& row : kSimple) made.add(row);
  for (const CallRow& row : kMappings) made.add(row);
  for (const long number : kNothing) made.add({number, {}});
  for (const long number : kEverything) made.add({number, {by_kind(OperandKind::everything, 0)}});
  return made;
}

constexpr Table kAll = all_calls();
static_assert(!kAll.twice);

}  // namespace

const CallRow* find_call(long number) {
  const bool known = number >= 0 && static_cast<std::size_t>(number) < kNumbers && kAll.known[number];
  return known ? &kAll.rows[number] : nullptr;
}

}  // namespace stretto::overlap
