/* SPDX-License-Identifier: BSD-3-Clause */
/* What fft3d.c, mlp.c, sample_sort.c and summa.c have in common: options, memory, checksums and the end of a program
 * that is wrong. Only rank 0 speaks where all ranks know the same. */
#ifndef STRETTO_EXAMPLES_SUPPORT_H
#define STRETTO_EXAMPLES_SUPPORT_H
#include <errno.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_WRONG_RESULT = 1, EXIT_BAD_INPUT = 2 };

static const char* program_name;
static int rank, size;

/* One rank alone is in trouble: it ends all of them. */
static inline void stop(const char* text) {
  fprintf(stderr, "%s: rank %d: %s\n", program_name, rank, text);
  MPI_Abort(MPI_COMM_WORLD, EXIT_BAD_INPUT);
}

/* All ranks call it with the same arguments. */
static inline void refuse(const char* option, const char* what, const char* text) {
  if (rank == 0) fprintf(stderr, "%s: %s %s, not '%s'\n", program_name, option, what, text);
  MPI_Finalize();
  exit(EXIT_BAD_INPUT);
}

static inline void refuse_option(const char* wrong, const char* usage) {
  if (rank == 0) {
    fprintf(stderr, "%s: unknown option or missing value: %s\n", program_name, wrong);
    fprintf(stderr, "usage: %s %s\n", program_name, usage);
  }
  MPI_Finalize();
  exit(EXIT_BAD_INPUT);
}

static inline long whole_number(const char* option, const char* text, long least, long most) {
  char *end, what[100];
  errno = 0;
  long value = strtol(text, &end, 10);
  if (end == text || *end || errno || value < least || value > most) {
    snprintf(what, sizeof what, "needs a whole number from %ld to %ld", least, most);
    refuse(option, what, text);
  }
  return value;
}

/* An option whose value is a whole number. */
struct whole_option {
  const char* name;
  long least, most;
  long* value;
};

/* Ends all ranks if the option is none of the `count` that are known, or has no such value. */
static inline void take_whole_option(const struct whole_option* known, size_t count, const char* name,
                                     const char* value, const char* usage) {
  for (size_t i = 0; i < count; i++)
    if (value && !strcmp(name, known[i].name)) {
      *known[i].value = whole_number(name, value, known[i].least, known[i].most);
      return;
    }
  refuse_option(name, usage);
}

static inline void parse_whole_options(const struct whole_option* known, size_t count, int argc, char** argv,
                                       const char* usage) {
  for (int i = 1; i < argc; i += 2) take_whole_option(known, count, argv[i], i + 1 < argc ? argv[i + 1] : NULL, usage);
}

static inline void* allocate(size_t count, size_t bytes) {
  void* memory = calloc(count ? count : 1, bytes);
  if (!memory) stop("out of memory");
  return memory;
}

/* `count` things dealt out evenly: where the part of rank `r` begins. */
static inline long first_of(long count, int r) { return count / size * r + (count % size < r ? count % size : r); }

/* Steele, Lea and Flood's mixer of 64 bits (SplitMix64). */
static inline uint64_t mix(uint64_t z) {
  z += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

/* Sums of whole numbers do not depend on the order of ranks: so a sum of hashes, each of a value and
 * its place, is the same for any number of ranks. */
static inline uint64_t sum_over_ranks(uint64_t mine) {
  uint64_t sum;
  MPI_Allreduce(&mine, &sum, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

/* All ranks learn whether one of them is wrong. The first one that is says what it has found. */
static inline void end_if_wrong(int wrong, const char* what) {
  int mine = wrong ? rank : size, first;
  MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
  if (first == size) return;
  if (rank == first) fprintf(stderr, "%s: wrong result: rank %d: %s\n", program_name, rank, what);
  MPI_Finalize();
  exit(EXIT_WRONG_RESULT);
}

#endif
