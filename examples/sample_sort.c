/* SPDX-License-Identifier: BSD-3-Clause */
/* Sample sort of 64-bit keys: an ordinary MPI program, which knows nothing of Stretto.
 *
 *   sample_sort [--keys N] [--spread uniform|skewed|equal|sorted] [--repeat R] [--seed S]
 *
 * Each rank sorts its keys and takes evenly spaced samples. All ranks sort all samples and agree on
 * splitters. An Alltoallv sends each rank the keys of its range, as one sorted run from every rank.
 * The rank merges these runs in turn: its own first, then those of the ranks before it.
 *
 * The program checks itself: keys are in order within ranks and between them, none is lost, and
 * their sum of hashes is that of the input. The n-th key of the input is the same for any number of
 * ranks, so the checksum of the sorted keys depends on the options alone. */
#include <limits.h>
#include <string.h>

#include "support.h"

enum { SAMPLES = 64, MOST_OPEN_RUNS = 64 };
static const char kUsage[] = "[--keys N] [--spread uniform|skewed|equal|sorted] [--repeat R] [--seed S]";

enum spread { UNIFORM, SKEWED, EQUAL, SORTED, SPREADS };
static const char* const kSpreads[SPREADS] = {"uniform", "skewed", "equal", "sorted"};

struct options {
  long keys;
  int repeat;
  enum spread spread;
  uint64_t seed;
};

enum phase { SORT, SPLIT, EXCHANGE, MERGE, PHASES };
static const char* const kPhaseNames[PHASES] = {"sort", "split", "exchange", "merge"};
static double phase_seconds[PHASES];

static uint64_t key_at(const struct options* o, long place) {
  uint64_t bits = mix(o->seed ^ mix((uint64_t)place));
  switch (o->spread) {
    case SKEWED: return bits >> (bits & 63); /* many are small */
    case EQUAL: return o->seed;
    case SORTED: return (uint64_t)place;
    default: return bits;
  }
}

/* ---- sorting within a rank ---- */

static int by_value(const void* left, const void* right) {
  uint64_t a = *(const uint64_t*)left, b = *(const uint64_t*)right;
  return (a > b) - (a < b);
}

struct run {
  uint64_t* keys;
  size_t count;
};

/* Merges two neighbouring runs by way of `scratch`. */
static struct run merged(struct run a, struct run b, uint64_t* scratch) {
  size_t i = 0, j = 0, at = 0;
  while (i < a.count && j < b.count) scratch[at++] = b.keys[j] < a.keys[i] ? b.keys[j++] : a.keys[i++];
  memcpy(scratch + at, a.keys + i, (a.count - i) * sizeof *scratch);
  memcpy(scratch + at + (a.count - i), b.keys + j, (b.count - j) * sizeof *scratch);
  memcpy(a.keys, scratch, (a.count + b.count) * sizeof *scratch);
  return (struct run){a.keys, a.count + b.count};
}

/* Copies one run after the other to `sorted`, and merges the last two until the older one is at least
 * twice as long. So each key is moved a logarithmic number of times, few runs are open, and no run
 * is touched before its turn. */
static void merge_runs(const uint64_t* received, const int* counts, const int* starts, uint64_t* sorted,
                       uint64_t* scratch) {
  struct run open[MOST_OPEN_RUNS];
  int depth = 0;
  uint64_t* end = sorted;
  for (int step = 0; step < size; step++) {
    const int source = (rank - step + size) % size;
    if (counts[source] == 0) continue;
    open[depth++] = (struct run){end, (size_t)counts[source]};
    memcpy(end, received + starts[source], (size_t)counts[source] * sizeof *end);
    end += counts[source];
    for (; depth > 1 && open[depth - 2].count < 2 * open[depth - 1].count; depth--)
      open[depth - 2] = merged(open[depth - 2], open[depth - 1], scratch);
  }
  for (; depth > 1; depth--) open[depth - 2] = merged(open[depth - 2], open[depth - 1], scratch);
}

/* ---- between ranks ---- */

/* The least key of each rank but the first. */
static void choose_splitters(const uint64_t* keys, long count, uint64_t* splitters) {
  uint64_t mine[SAMPLES], *all = allocate((size_t)size * SAMPLES, sizeof *all);
  /* A rank without keys has nothing to say: its samples are larger than all keys of others. */
  for (int i = 0; i < SAMPLES; i++) mine[i] = count ? keys[count * i / SAMPLES] : UINT64_MAX;
  MPI_Allgather(mine, SAMPLES, MPI_UINT64_T, all, SAMPLES, MPI_UINT64_T, MPI_COMM_WORLD);
  qsort(all, (size_t)size * SAMPLES, sizeof *all, by_value);
  for (int r = 1; r < size; r++) splitters[r] = all[r * SAMPLES];
  free(all);
}

static long first_not_below(const uint64_t* keys, long count, uint64_t value) {
  long low = 0;
  while (low < count) {
    long middle = low + (count - low) / 2;
    if (keys[middle] < value)
      low = middle + 1;
    else
      count = middle;
  }
  return low;
}

/* What goes to each rank, and what comes from it. Returns how many keys come. */
static long exchange_counts(const uint64_t* keys, long count, int* lists[4]) {
  int *sent = lists[0], *sent_starts = lists[1], *received = lists[2], *received_starts = lists[3];
  uint64_t* splitters = allocate((size_t)size, sizeof *splitters);
  choose_splitters(keys, count, splitters);
  long begin = 0;
  for (int r = 0; r < size; r++) {
    long end = r + 1 < size ? first_not_below(keys, count, splitters[r + 1]) : count;
    sent_starts[r] = (int)begin;
    sent[r] = (int)(end - begin);
    begin = end;
  }
  free(splitters);
  MPI_Alltoall(sent, 1, MPI_INT, received, 1, MPI_INT, MPI_COMM_WORLD);
  long total = 0;
  for (int r = 0; r < size; r++) {
    received_starts[r] = (int)total;
    total += received[r];
    if (total > INT_MAX) stop("more than 2^31 - 1 keys for one rank");
  }
  return total;
}

/* Sorts the keys of all ranks. Returns this rank's part, whose length comes back in *count. */
static uint64_t* sample_sort(uint64_t* keys, long* count) {
  int* lists[4];
  for (int i = 0; i < 4; i++) lists[i] = allocate((size_t)size, sizeof(int));
  double t0 = MPI_Wtime();
  qsort(keys, (size_t)*count, sizeof *keys, by_value);
  double t1 = MPI_Wtime();
  long total = exchange_counts(keys, *count, lists);
  uint64_t* received = allocate((size_t)total, sizeof *received);
  uint64_t* sorted = allocate((size_t)total, sizeof *sorted);
  uint64_t* scratch = allocate((size_t)total, sizeof *scratch);
  double t2 = MPI_Wtime();
  MPI_Alltoallv(keys, lists[0], lists[1], MPI_UINT64_T, received, lists[2], lists[3], MPI_UINT64_T, MPI_COMM_WORLD);
  double t3 = MPI_Wtime();
  merge_runs(received, lists[2], lists[3], sorted, scratch);
  double t4 = MPI_Wtime();
  phase_seconds[SORT] += t1 - t0;
  phase_seconds[SPLIT] += t2 - t1;
  phase_seconds[EXCHANGE] += t3 - t2;
  phase_seconds[MERGE] += t4 - t3;
  for (int i = 0; i < 4; i++) free(lists[i]);
  free(received), free(scratch);
  *count = total;
  return sorted;
}

/* ---- checks ---- */

static uint64_t sum_of_hashes(const uint64_t* keys, long count) {
  uint64_t sum = 0;
  for (long i = 0; i < count; i++) sum += mix(keys[i]);
  return sum_over_ranks(sum);
}

/* Whether the keys are in order, and none is below the largest key of a lower rank. */
static int is_in_order(const uint64_t* keys, long count) {
  struct {
    uint64_t largest, count;
  } mine = {count ? keys[count - 1] : 0, (uint64_t)count}, *all = allocate((size_t)size, sizeof *all);
  int ordered = 1;
  for (long i = 1; i < count; i++) ordered &= keys[i - 1] <= keys[i];
  MPI_Allgather(&mine, 2, MPI_UINT64_T, all, 2, MPI_UINT64_T, MPI_COMM_WORLD);
  for (int r = 0; r < rank; r++) ordered &= !count || !all[r].count || all[r].largest <= keys[0];
  free(all);
  return ordered;
}

/* Of each key and its place among all. */
static uint64_t checksum(const uint64_t* keys, long count) {
  uint64_t before = 0, mine = (uint64_t)count, sum = 0;
  MPI_Exscan(&mine, &before, 1, MPI_UINT64_T, MPI_SUM, MPI_COMM_WORLD);
  if (rank == 0) before = 0; /* MPI leaves it undefined */
  for (long i = 0; i < count; i++) sum += mix(keys[i] ^ mix(before + (uint64_t)i));
  return sum_over_ranks(sum);
}

/* ---- the run ---- */

static enum spread parse_spread(const char* text) {
  for (int s = 0; s < SPREADS; s++)
    if (!strcmp(text, kSpreads[s])) return (enum spread)s;
  refuse("--spread", "is one of uniform, skewed, equal, sorted", text);
  return UNIFORM;
}

static struct options parse(int argc, char** argv) {
  struct options o = {.keys = 200000, .spread = UNIFORM};
  long repeat = 2, seed = 1;
  const struct whole_option known[] = {
      {"--keys", 0, INT_MAX, &o.keys}, {"--repeat", 1, 1000000, &repeat}, {"--seed", 0, 1000000000, &seed}};
  for (int i = 1; i < argc; i += 2) {
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (value && !strcmp(argv[i], "--spread"))
      o.spread = parse_spread(value);
    else
      take_whole_option(known, sizeof known / sizeof *known, argv[i], value, kUsage);
  }
  o.repeat = (int)repeat, o.seed = (uint64_t)seed;
  return o;
}

static uint64_t once(const struct options* o, long* largest_part) {
  const long begin = first_of(o->keys, rank);
  long count = first_of(o->keys, rank + 1) - begin;
  uint64_t* keys = allocate((size_t)count, sizeof *keys);
  for (long i = 0; i < count; i++) keys[i] = key_at(o, begin + i);
  const uint64_t before = sum_of_hashes(keys, count);
  MPI_Barrier(MPI_COMM_WORLD);
  uint64_t* sorted = sample_sort(keys, &count);
  free(keys);
  end_if_wrong(!is_in_order(sorted, count), "keys are not in order");
  end_if_wrong(sum_over_ranks((uint64_t)count) != (uint64_t)o->keys, "another number of keys than before");
  end_if_wrong(sum_of_hashes(sorted, count) != before, "other keys than before");
  const uint64_t sum = checksum(sorted, count);
  MPI_Allreduce(&count, largest_part, 1, MPI_LONG, MPI_MAX, MPI_COMM_WORLD);
  free(sorted);
  return sum;
}

int main(int argc, char** argv) {
  program_name = "sample_sort";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  struct options o = parse(argc, argv);
  uint64_t sum = 0;
  long largest_part = 0;
  for (int i = 0; i < o.repeat; i++) {
    uint64_t again = once(&o, &largest_part);
    end_if_wrong(i > 0 && again != sum, "another result than in the first repetition");
    sum = again;
  }
  double slowest[PHASES];
  MPI_Reduce(phase_seconds, slowest, PHASES, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("keys %ld, spread %s, ranks %d, largest part %ld\n", o.keys, kSpreads[o.spread], size, largest_part);
    printf("checksum %016llx\n", (unsigned long long)sum);
    printf("seconds per sort:");
    for (int i = 0; i < PHASES; i++) printf("%s %s %.6f", i ? "," : "", kPhaseNames[i], slowest[i] / o.repeat);
    printf("\n");
  }
  MPI_Finalize();
  return 0;
}
