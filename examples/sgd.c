/* SPDX-License-Identifier: BSD-3-Clause */
/* Data-parallel stochastic gradient descent: sgd [STEPS [FEATURES]]
 *
 * Each rank has its own samples and a copy of the model, a logistic regression with sparse features.
 * In each step ranks take the gradient of a batch, and add their gradients by Allreduce. So all
 * copies stay equal. The labels come from hidden weights, which the model must learn. */
#include <math.h>
#include <mpi.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BATCH = 64, PER_SAMPLE = 16, TESTED = 2000 };

struct sample {
  int feature[PER_SAMPLE];
  double label; /* 0 or 1 */
};

static int features = 1 << 15;

static uint64_t mix(uint64_t z) { /* SplitMix64 */
  z += UINT64_C(0x9E3779B97F4A7C15);
  z = (z ^ z >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
  z = (z ^ z >> 27) * UINT64_C(0x94D049BB133111EB);
  return z ^ z >> 31;
}

static double hidden_weight(int feature) { return (double)(mix((uint64_t)feature) >> 11) / (1ull << 52) - 1; }

static struct sample draw(uint64_t number) {
  struct sample s;
  double sum = 0;
  for (int i = 0; i < PER_SAMPLE; i++) {
    s.feature[i] = (int)(mix(number * PER_SAMPLE + (uint64_t)i) % (uint64_t)features);
    sum += hidden_weight(s.feature[i]);
  }
  s.label = sum > 0;
  return s;
}

static double predict(const double* model, const struct sample* s) {
  double sum = 0;
  for (int i = 0; i < PER_SAMPLE; i++) sum += model[s->feature[i]];
  return 1 / (1 + exp(-sum));
}

/* The part of samples, none of which was used for training, that the model puts into the right class. */
static double accuracy(const double* model) {
  int hits = 0;
  for (int i = 0; i < TESTED; i++) {
    struct sample s = draw((UINT64_C(1) << 50) + (uint64_t)i);
    hits += (predict(model, &s) > 0.5) == (s.label > 0.5);
  }
  return (double)hits / TESTED;
}

static int all_copies_are_equal(const double* model) {
  uint64_t mine[2] = {0, 0}, most[2];
  for (int i = 0; i < features; i++) {
    uint64_t bits;
    memcpy(&bits, &model[i], sizeof bits);
    mine[0] = mix(mine[0] ^ bits);
  }
  mine[1] = ~mine[0]; /* its maximum tells the minimum of the first */
  MPI_Allreduce(mine, most, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  return most[0] == ~most[1];
}

int main(int argc, char** argv) {
  int rank, ranks;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  int steps = argc > 1 ? atoi(argv[1]) : 2000;
  if (argc > 2) features = atoi(argv[2]);
  if (features < 1) features = 1;
  double* model = calloc((size_t)features, sizeof *model);
  double* gradient = malloc((size_t)features * sizeof *gradient);

  double begin = MPI_Wtime();
  for (int step = 0; step < steps; step++) {
    memset(gradient, 0, (size_t)features * sizeof *gradient);
    for (int i = 0; i < BATCH; i++) {
      struct sample s = draw(((uint64_t)step * (uint64_t)ranks + (uint64_t)rank) * BATCH + (uint64_t)i);
      double error = predict(model, &s) - s.label;
      for (int j = 0; j < PER_SAMPLE; j++) gradient[s.feature[j]] += error;
    }
    MPI_Allreduce(MPI_IN_PLACE, gradient, features, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    for (int i = 0; i < features; i++) model[i] -= 0.3 * gradient[i];
  }
  double seconds = MPI_Wtime() - begin;

  double hits = accuracy(model);
  int right = all_copies_are_equal(model) && hits > 0.8;
  if (rank == 0)
    printf("sgd: %d steps, %d features, %d ranks: %s, %.3f s (%.0f%% of the tested samples)\n", steps, features, ranks,
           right ? "right" : "wrong", seconds, 100 * hits);
  free(model), free(gradient);
  MPI_Finalize();
  return !right;
}
