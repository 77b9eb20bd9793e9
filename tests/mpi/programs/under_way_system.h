// SPDX-License-Identifier: BSD-3-Clause
// Cases of under_way.c: system calls and other processes use data that may not be there yet.
#pragma once
#include <fcntl.h>
#include <pthread.h>
#include <spawn.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <sys/wait.h>

#include "under_way.h"

extern char** environ;

// ---- system calls ----

static void files(void) {
  char name[] = "/tmp/overlap-XXXXXX";
  const int file = mkstemp(name);
  REQUIRE(file >= 0);
  unlink(name);
  char* const copy = malloc(all());
  exchange(in);
  REQUIRE(write(file, in, all()) == (ssize_t)all());
  REQUIRE(pread(file, copy, all(), 0) == (ssize_t)all());
  check(copy);
  // Two pieces, the later one first: each waits for its own pages.
  exchange(in);
  struct iovec pieces[2] = {{in + all() / 2, all() / 2}, {in, all() / 2}};
  REQUIRE(pwritev(file, pieces, 2, 0) == (ssize_t)(all() / 2 * 2));
  REQUIRE(pread(file, copy, all() / 2, 0) == (ssize_t)(all() / 2));
  wrong += memcmp(copy, in + all() / 2, all() / 2) != 0;
  check(in);
  // What is read into the buffer comes after the data.
  exchange(in);
  struct iovec into[2] = {{in + 5000, 3000}, {in + all() - 9000, 2000}};
  REQUIRE(preadv(file, into, 2, 0) == 5000);
  REQUIRE(pread(file, copy, 5000, 0) == 5000);
  wrong += memcmp(in + 5000, copy, 3000) != 0;
  wrong += memcmp(in + all() - 9000, copy + 3000, 2000) != 0;
  close(file);
  free(copy);
}

static void streams(void) {
  FILE* const file = tmpfile();
  REQUIRE(file != NULL);
  char* const copy = malloc(all());
  exchange(in);
  REQUIRE(fwrite(in, 1, all(), file) == all());
  rewind(file);
  REQUIRE(fread(copy, 1, all(), file) == all());
  check(copy);
  exchange(in);
  rewind(file);
  REQUIRE(fread(in, 1, all(), file) == all());  // the former data
  --turn;
  check(in);
  ++turn;
  fclose(file);
  free(copy);
}

static void* drain(void* end) {
  char* const copy = malloc(all());
  for (size_t got = 0; got < all();) {
    const ssize_t more = recv(*(int*)end, copy + got, all() - got, 0);
    if (more <= 0) break;
    got += (size_t)more;
  }
  check(copy);
  free(copy);
  return NULL;
}
static void sockets(void) {
  int ends[2];
  REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, ends) == 0);
  pthread_t made;
  REQUIRE(pthread_create(&made, NULL, drain, &ends[1]) == 0);
  exchange(in);
  for (size_t sent = 0; sent < all();) {
    const ssize_t more = send(ends[0], in + sent, all() - sent, 0);
    REQUIRE(more > 0);
    sent += (size_t)more;
  }
  pthread_join(made, NULL);
  close(ends[0]);
  close(ends[1]);
}

// ---- processes ----

static int exit_code(pid_t child) {
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 99;
}
static void forks(void) {
  for (int i = 0; i < 3; ++i) {
    exchange(in);
    const pid_t child = fork();
    REQUIRE(child >= 0);
    if (child == 0) {
      wrong = 0;
      check(in);
      _exit(wrong != 0);
    }
    memset(in, 0, 4096);  // the parent's, after the fork
    REQUIRE(exit_code(child) == 0);
  }
}
static void commands(void) {
  exchange(in);
  REQUIRE(system("exit 7") == 7 << 8);
  check(in);
  exchange(in);
  // The argument lies among the data.
  char* const word = in + all() / 2;
  strcpy(word, "exit 5");
  char* words[] = {(char*)"sh", (char*)"-c", word, NULL};
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, "/bin/sh", NULL, NULL, words, environ) == 0);
  REQUIRE(exit_code(child) == 5);
}
