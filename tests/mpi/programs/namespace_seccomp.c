// SPDX-License-Identifier: BSD-3-Clause
// Runs a program under a seccomp filter as containers have it: some system calls fail with EPERM.
//   namespace_seccomp LIST program args...     LIST of memfd,cma,pidfd,random,fallocate,...
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static const struct {
  const char* name;
  int calls[4];
} kGroups[] = {
    {"memfd", {SYS_memfd_create, -1}},
    {"cma", {SYS_process_vm_readv, SYS_process_vm_writev, -1}},
    {"pidfd", {SYS_pidfd_open, SYS_pidfd_getfd, -1}},
    {"random", {SYS_getrandom, -1}},
    {"fallocate", {SYS_fallocate, -1}},
    {"membarrier", {SYS_membarrier, -1}},
    {"userfaultfd", {SYS_userfaultfd, -1}},
};

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  struct sock_filter program[64];
  unsigned n = 0;
  program[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
  for (size_t g = 0; g < sizeof kGroups / sizeof *kGroups; g++) {
    if (!strstr(argv[1], kGroups[g].name)) continue;
    for (const int* call = kGroups[g].calls; *call >= 0; call++) {
      program[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)*call, 0, 1);
      program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM);
    }
  }
  program[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  struct sock_fprog filter = {(unsigned short)n, program};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) {
    perror("seccomp");
    return 126;
  }
  execvp(argv[2], argv + 2);
  perror(argv[2]);
  return 127;
}
