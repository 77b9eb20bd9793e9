/* SPDX-License-Identifier: BSD-3-Clause */
/* A three-dimensional Fourier transform, forth and back: an ordinary MPI program, which knows
 * nothing of Stretto.
 *
 *   fft3d [--size N | --size NXxNYxNZ] [--fields F] [--repeat R] [--seed S]
 *
 * Each rank holds a slab of whole planes (y, z). The forward transform takes lines along z, then
 * along y. One Alltoall gives each rank all x of some y; then come the lines along x. The backward
 * transform goes the same way back. Where planes do not deal out evenly, Alltoallv takes the place
 * of Alltoall.
 *
 * After an exchange, nothing is unpacked. A line along x takes a piece of every rank's block, so
 * the forward transform uses all blocks alike. A line along z lies in one block, so the backward
 * transform finishes one block after the other: its own first, then those of the ranks before it.
 *
 * Fields, such as the components of a velocity, are transformed together: first all as far as their
 * exchange, then all the rest.
 *
 * The program checks itself: the inverse must give the input back, energies must agree (Parseval),
 * and two frequencies must be what the definition says. Each number is computed by one rank, in the
 * same way for any number of ranks, so the checksum depends on size and seed alone. */
#include <float.h>
#include <math.h>
#include <string.h>

#include "fft_line.h"
#include "support.h"

enum { AXES = 3, X = 0, Y = 1, Z = 2 };
static const char kUsage[] = "[--size N | --size NXxNYxNZ] [--fields F] [--repeat R] [--seed S]";

/* ---- the grid and its exchange ---- */

struct grid {
  int n[AXES];
  int xs, ys, x0, y0; /* my planes of x, before the exchange, and of y, after it */
  int even;           /* whether all ranks have as many */
  struct line_plan line[AXES];
  cplx* planes; /* [my x][y][z] */
  cplx* pieces; /* of my planes, by the rank they go to or come from: [rank][my x][its y][z] */
  cplx* turned; /* [x][my y][z]: one rank's block after the other, too */
  int *piece_counts, *piece_starts, *turned_counts, *turned_starts; /* in doubles */
};

static double exchange_seconds;

static int part_of(int n, int r) { return (int)(first_of(n, r + 1) - first_of(n, r)); }

static struct grid make_grid(const int n[AXES]) {
  struct grid g = {.xs = part_of(n[X], rank),
                   .ys = part_of(n[Y], rank),
                   .x0 = (int)first_of(n[X], rank),
                   .y0 = (int)first_of(n[Y], rank),
                   .even = n[X] % size == 0 && n[Y] % size == 0};
  memcpy(g.n, n, sizeof g.n);
  for (int axis = 0; axis < AXES; axis++) g.line[axis] = plan_line(n[axis]);
  size_t mine = (size_t)g.xs * n[Y] * n[Z], after = (size_t)n[X] * g.ys * n[Z];
  g.planes = allocate(mine, sizeof(cplx));
  g.pieces = allocate(mine, sizeof(cplx));
  g.turned = allocate(after, sizeof(cplx));
  int** lists[] = {&g.piece_counts, &g.piece_starts, &g.turned_counts, &g.turned_starts};
  for (int i = 0; i < 4; i++) *lists[i] = allocate((size_t)size, sizeof(int));
  for (int r = 0; r < size; r++) {
    g.piece_counts[r] = 2 * g.xs * part_of(n[Y], r) * n[Z];
    g.piece_starts[r] = 2 * g.xs * (int)first_of(n[Y], r) * n[Z];
    g.turned_counts[r] = 2 * part_of(n[X], r) * g.ys * n[Z];
    g.turned_starts[r] = 2 * (int)first_of(n[X], r) * g.ys * n[Z];
  }
  return g;
}

static void free_grid(struct grid* g) {
  for (int axis = 0; axis < AXES; axis++) free_line(&g->line[axis]);
  free(g->planes), free(g->pieces), free(g->turned);
  free(g->piece_counts), free(g->piece_starts), free(g->turned_counts), free(g->turned_starts);
}

static void exchange(const struct grid* g, int forward) {
  double* pieces = (double*)g->pieces;
  double* turned = (double*)g->turned;
  double begin = MPI_Wtime();
  if (g->even)
    MPI_Alltoall(forward ? pieces : turned, g->piece_counts[0], MPI_DOUBLE, forward ? turned : pieces,
                 g->piece_counts[0], MPI_DOUBLE, MPI_COMM_WORLD);
  else if (forward)
    MPI_Alltoallv(pieces, g->piece_counts, g->piece_starts, MPI_DOUBLE, turned, g->turned_counts, g->turned_starts,
                  MPI_DOUBLE, MPI_COMM_WORLD);
  else
    MPI_Alltoallv(turned, g->turned_counts, g->turned_starts, MPI_DOUBLE, pieces, g->piece_counts, g->piece_starts,
                  MPI_DOUBLE, MPI_COMM_WORLD);
  exchange_seconds += MPI_Wtime() - begin;
}

/* ---- three dimensions ---- */

static cplx* piece_line(const struct grid* g, int r, int x, int y) {
  return g->pieces + g->piece_starts[r] / 2 + ((size_t)x * part_of(g->n[Y], r) + y) * g->n[Z];
}

static cplx* plane_line(const struct grid* g, int x, int y) { return g->planes + ((size_t)x * g->n[Y] + y) * g->n[Z]; }

static void lines_along_y(struct grid* g, int sign) {
  for (int x = 0; x < g->xs; x++)
    for (int z = 0; z < g->n[Z]; z += LINES_AT_ONCE)
      transform_lines(&g->line[Y], plane_line(g, x, 0) + z, g->n[Z] - z < LINES_AT_ONCE ? g->n[Z] - z : LINES_AT_ONCE,
                      (size_t)g->n[Z], sign);
}

static void lines_along_x(struct grid* g, int sign) {
  for (int y = 0; y < g->ys; y++)
    for (int z = 0; z < g->n[Z]; z += LINES_AT_ONCE)
      transform_lines(&g->line[X], g->turned + (size_t)y * g->n[Z] + z,
                      g->n[Z] - z < LINES_AT_ONCE ? g->n[Z] - z : LINES_AT_ONCE, (size_t)g->ys * g->n[Z], sign);
}

/* From `planes` to `turned`, up to the lines along x. */
static void begin_forward(struct grid* g) {
  for (int x = 0; x < g->xs; x++)
    for (int y = 0; y < g->n[Y]; y++) transform_line(&g->line[Z], plane_line(g, x, y), 1);
  lines_along_y(g, 1);
  for (int r = 0; r < size; r++)
    for (int x = 0; x < g->xs; x++)
      memcpy(piece_line(g, r, x, 0), plane_line(g, x, (int)first_of(g->n[Y], r)),
             (size_t)part_of(g->n[Y], r) * g->n[Z] * sizeof(cplx));
  exchange(g, 1);
}

static void forward(struct grid* fields, int count) {
  for (int i = 0; i < count; i++) begin_forward(&fields[i]);
  for (int i = 0; i < count; i++) lines_along_x(&fields[i], 1);
}

/* From `turned` to `planes`, which become those that forward() had, up to rounding. */
static void end_backward(struct grid* g) {
  const double scale = 1.0 / ((double)g->n[X] * g->n[Y] * g->n[Z]);
  for (int step = 0; step < size; step++) {
    const int r = (rank - step + size) % size;
    for (int x = 0; x < g->xs; x++)
      for (int y = 0; y < part_of(g->n[Y], r); y++) {
        cplx *from = piece_line(g, r, x, y), *to = plane_line(g, x, (int)first_of(g->n[Y], r) + y);
        transform_line(&g->line[Z], from, -1);
        for (int z = 0; z < g->n[Z]; z++) to[z] = (cplx){from[z].re * scale, from[z].im * scale};
      }
  }
  lines_along_y(g, -1);
}

static void backward(struct grid* fields, int count) {
  for (int i = 0; i < count; i++) {
    lines_along_x(&fields[i], -1);
    exchange(&fields[i], 0);
  }
  for (int i = 0; i < count; i++) end_backward(&fields[i]);
}

/* ---- input and checks ---- */

static double unit(uint64_t bits) { return (double)(bits >> 11) / 9007199254740992.0 - 0.5; }

static cplx input_at(const struct grid* g, uint64_t seed, int x, int y, int z) {
  uint64_t place = ((uint64_t)x * g->n[Y] + y) * g->n[Z] + z;
  return (cplx){unit(mix(seed ^ mix(2 * place))), unit(mix(seed ^ mix(2 * place + 1)))};
}

static void fill(struct grid* g, uint64_t seed) {
  for (int x = 0; x < g->xs; x++)
    for (int y = 0; y < g->n[Y]; y++)
      for (int z = 0; z < g->n[Z]; z++) plane_line(g, x, y)[z] = input_at(g, seed, g->x0 + x, y, z);
}

static double largest_difference(const struct grid* g, uint64_t seed) {
  double largest = 0;
  for (int x = 0; x < g->xs; x++)
    for (int y = 0; y < g->n[Y]; y++)
      for (int z = 0; z < g->n[Z]; z++) {
        cplx d = minus(plane_line(g, x, y)[z], input_at(g, seed, g->x0 + x, y, z));
        double size_of_d = fabs(d.re) + fabs(d.im);
        if (!(size_of_d <= largest)) largest = size_of_d; /* NaN counts as a difference, too */
      }
  return largest;
}

static double energy(const cplx* data, size_t count) {
  double mine = 0, sum;
  for (size_t i = 0; i < count; i++) mine += data[i].re * data[i].re + data[i].im * data[i].im;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

/* One output by the definition: the sum of all inputs, each turned by its angle. */
static cplx by_definition(const struct grid* g, const int k[AXES]) {
  cplx mine = {0, 0}, sum;
  for (int x = 0; x < g->xs; x++)
    for (int y = 0; y < g->n[Y]; y++) {
      cplx turn =
          times(g->line[X].root[(int64_t)k[X] * (g->x0 + x) % g->n[X]], g->line[Y].root[(int64_t)k[Y] * y % g->n[Y]]);
      for (int z = 0; z < g->n[Z]; z++) {
        cplx w = times(turn, g->line[Z].root[(int64_t)k[Z] * z % g->n[Z]]);
        mine = plus(mine, times(w, plane_line(g, x, y)[z]));
      }
    }
  MPI_Allreduce(&mine, &sum, 2, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum;
}

static int is_right_at(const struct grid* g, const int k[AXES], cplx expected, double tolerance) {
  if (k[Y] < g->y0 || k[Y] >= g->y0 + g->ys) return 1; /* another rank has it */
  cplx d = minus(g->turned[((size_t)k[X] * g->ys + (k[Y] - g->y0)) * g->n[Z] + k[Z]], expected);
  return fabs(d.re) + fabs(d.im) <= tolerance;
}

static uint64_t checksum(const struct grid* g) {
  uint64_t sum = 0;
  for (int x = 0; x < g->n[X]; x++)
    for (int y = 0; y < g->ys; y++)
      for (int z = 0; z < g->n[Z]; z++) {
        uint64_t bits[2], place = ((uint64_t)x * g->n[Y] + g->y0 + y) * g->n[Z] + z;
        memcpy(bits, &g->turned[((size_t)x * g->ys + y) * g->n[Z] + z], sizeof bits);
        sum += mix(place ^ mix(bits[0]) ^ mix(mix(bits[1])));
      }
  return sum_over_ranks(sum);
}

/* ---- the run ---- */

struct options {
  int n[AXES], fields, repeat;
  uint64_t seed;
};

static void parse_size(const char* text, int n[AXES]) {
  char rest;
  int count = sscanf(text, "%dx%dx%d%c", &n[X], &n[Y], &n[Z], &rest);
  if (count == 1 && strspn(text, "0123456789") == strlen(text)) n[Y] = n[Z] = n[X], count = AXES;
  int64_t elements = 1;
  for (int axis = 0; axis < AXES && count == AXES; axis++)
    elements = n[axis] < 1 || n[axis] > 1 << 20 || elements > 1 << 30 ? 0 : elements * n[axis];
  if (count != AXES || elements < 1 || elements >= 1 << 30)
    refuse("--size", "needs N or NXxNYxNZ with fewer than 2^30 elements", text);
}

static struct options parse(int argc, char** argv) {
  struct options o = {.n = {48, 32, 40}};
  long fields = 1, repeat = 2, seed = 1;
  const struct whole_option known[] = {
      {"--fields", 1, 1000, &fields}, {"--repeat", 1, 1000000, &repeat}, {"--seed", 0, 1000000000, &seed}};
  for (int i = 1; i < argc; i += 2) {
    const char* value = i + 1 < argc ? argv[i + 1] : NULL;
    if (value && !strcmp(argv[i], "--size"))
      parse_size(value, o.n);
    else
      take_whole_option(known, sizeof known / sizeof *known, argv[i], value, kUsage);
  }
  o.fields = (int)fields, o.repeat = (int)repeat, o.seed = (uint64_t)seed;
  return o;
}

struct results {
  double seconds; /* of all transforms, without input and checks */
  uint64_t checksum;
};

/* What a field must give, and by how much it may be off. */
struct expectation {
  int near[AXES], far[AXES];
  cplx value_near, value_far;
  double energy, elements, tolerance;
};

static struct expectation fill_and_expect(struct grid* g, uint64_t seed) {
  const double elements = (double)g->n[X] * g->n[Y] * g->n[Z];
  struct expectation e = {.near = {g->n[X] > 1, 0, g->n[Z] > 2 ? 2 : 0},
                          .far = {g->n[X] / 3, g->n[Y] - 1, g->n[Z] / 2}};
  fill(g, seed);
  e.value_near = by_definition(g, e.near);
  e.value_far = by_definition(g, e.far);
  e.energy = energy(g->planes, (size_t)g->xs * g->n[Y] * g->n[Z]);
  e.elements = elements;
  /* An error grows with the logarithm of the length, and outputs are sums of so many inputs. */
  e.tolerance = 64 * DBL_EPSILON * (log2(elements) + g->n[X] + g->n[Y] + g->n[Z]);
  return e;
}

static void check_forward(const struct grid* g, const struct expectation* e) {
  const double tolerance = e->tolerance * sqrt(e->elements) * 4;
  end_if_wrong(!is_right_at(g, e->near, e->value_near, tolerance), "the low frequency is wrong");
  end_if_wrong(!is_right_at(g, e->far, e->value_far, tolerance), "the high frequency is wrong");
  double after = energy(g->turned, (size_t)g->n[X] * g->ys * g->n[Z]) / e->elements;
  end_if_wrong(!(fabs(after - e->energy) <= e->tolerance * e->energy), "energies differ (Parseval)");
}

static double timed(void (*transform)(struct grid*, int), struct grid* fields, int count) {
  MPI_Barrier(MPI_COMM_WORLD);
  double begin = MPI_Wtime();
  transform(fields, count);
  return MPI_Wtime() - begin;
}

static void once(struct grid* fields, const struct options* o, struct expectation* expected, struct results* results) {
  for (int i = 0; i < o->fields; i++) expected[i] = fill_and_expect(&fields[i], o->seed + (uint64_t)i);
  results->seconds += timed(forward, fields, o->fields);
  uint64_t sum = 0;
  for (int i = 0; i < o->fields; i++) {
    check_forward(&fields[i], &expected[i]);
    sum += checksum(&fields[i]);
  }
  end_if_wrong(results->checksum && sum != results->checksum, "another result than in the first repetition");
  results->checksum = sum;

  results->seconds += timed(backward, fields, o->fields);
  for (int i = 0; i < o->fields; i++)
    end_if_wrong(!(largest_difference(&fields[i], o->seed + (uint64_t)i) <= expected[i].tolerance),
                 "the inverse does not give the input back");
}

int main(int argc, char** argv) {
  program_name = "fft3d";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  struct options o = parse(argc, argv);
  struct grid* fields = allocate((size_t)o.fields, sizeof *fields);
  struct expectation* expected = allocate((size_t)o.fields, sizeof *expected);
  for (int i = 0; i < o.fields; i++) fields[i] = make_grid(o.n);
  struct results results = {0, 0};
  for (int i = 0; i < o.repeat; i++) once(fields, &o, expected, &results);

  const int transforms = 2 * o.repeat * o.fields;
  double mine[2] = {results.seconds / transforms, exchange_seconds / transforms}, slowest[2];
  MPI_Reduce(mine, slowest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("size %dx%dx%d, ranks %d, transforms %d\n", o.n[X], o.n[Y], o.n[Z], size, transforms);
    printf("checksum %016llx\n", (unsigned long long)results.checksum);
    printf("seconds per transform %.6f, of which in %s %.6f\n", slowest[0], fields[0].even ? "Alltoall" : "Alltoallv",
           slowest[1]);
  }
  for (int i = 0; i < o.fields; i++) free_grid(&fields[i]);
  free(fields), free(expected);
  MPI_Finalize();
  return 0;
}
