/* SPDX-License-Identifier: BSD-3-Clause */
/* Data-parallel training of a multilayer perceptron: an ordinary MPI program, which knows nothing of
 * Stretto.
 *
 *   mlp [--width N] [--layers L] [--batch B] [--steps S]
 *
 * Each rank has its own samples and a copy of the weights: L layers of N x N. A step goes forward
 * through the layers with B samples, then back. Going back, it adds the ranks' gradients of a layer by
 * Allreduce as soon as it has them, then goes on to the layer before. At last it changes all weights.
 * So all copies stay equal. The net learns a known function of its input. */
#include <math.h>
#include <string.h>

#include "support.h"

static const char kUsage[] = "[--width N] [--layers L] [--batch B] [--steps S]";
static const float kRate = 0.02f; /* of learning: the part of a gradient that is taken off the weights */
enum { LANES = 8 };

struct options {
  long width, layers, batch, steps;
};

/* Matrices are row after row: a layer's weights have a row for each input, activations for each sample. */
struct net {
  int n, layers, batch;
  float **weights, **gradients; /* of each layer */
  float** activations;          /* inputs of each layer, and the output of the last */
  float *deltas, *deltas_before, *wanted;
};

static double allreduce_seconds;

/* ---- matrices ---- */

static void add_multiple(float* restrict y, float a, const float* restrict x, int n) {
  for (int i = 0; i < n; i++) y[i] += a * x[i];
}

static float dot(const float* x, const float* y, int n) {
  float lanes[LANES] = {0}, sum = 0;
  int i = 0;
  for (; i + LANES <= n; i += LANES)
    for (int j = 0; j < LANES; j++) lanes[j] += x[i + j] * y[i + j];
  for (; i < n; i++) sum += x[i] * y[i];
  for (int j = 0; j < LANES; j++) sum += lanes[j];
  return sum;
}

/* ---- one step ---- */

static float uniform(uint64_t number) { return (float)(mix(number) >> 40) / (1 << 23) - 1; } /* -1 to 1 */

/* The net is to learn this: each output is a mean of two neighbours. */
static void draw(struct net* net, uint64_t first_sample) {
  const int n = net->n;
  for (int s = 0; s < net->batch; s++) {
    float *x = net->activations[0] + (size_t)s * n, *y = net->wanted + (size_t)s * n;
    for (int i = 0; i < n; i++) x[i] = uniform((first_sample + (uint64_t)s) * (uint64_t)n + (uint64_t)i);
    for (int i = 0; i < n; i++) y[i] = (x[i] + x[(i + 1) % n]) / 2;
  }
}

static void forward(struct net* net) {
  const int n = net->n;
  for (int layer = 0; layer < net->layers; layer++)
    for (int s = 0; s < net->batch; s++) {
      const float* x = net->activations[layer] + (size_t)s * n;
      float* y = net->activations[layer + 1] + (size_t)s * n;
      memset(y, 0, (size_t)n * sizeof *y);
      for (int i = 0; i < n; i++) add_multiple(y, x[i], net->weights[layer] + (size_t)i * n, n);
      if (layer + 1 < net->layers)
        for (int o = 0; o < n; o++) y[o] = tanhf(y[o]);
    }
}

/* This rank's mean error, and what the output adds to it. */
static double loss(struct net* net) {
  const float* output = net->activations[net->layers];
  const size_t count = (size_t)net->batch * net->n;
  double sum = 0;
  for (size_t i = 0; i < count; i++) {
    net->deltas[i] = output[i] - net->wanted[i];
    sum += net->deltas[i] * net->deltas[i];
  }
  return sum / (double)count;
}

static void take_gradient(struct net* net, int layer) {
  const int n = net->n;
  float* gradient = net->gradients[layer];
  memset(gradient, 0, (size_t)n * n * sizeof *gradient);
  for (int i = 0; i < n; i++)
    for (int s = 0; s < net->batch; s++)
      add_multiple(gradient + (size_t)i * n, net->activations[layer][(size_t)s * n + i], net->deltas + (size_t)s * n,
                   n);
}

static void go_back_through(struct net* net, int layer) {
  const int n = net->n;
  for (int s = 0; s < net->batch; s++)
    for (int i = 0; i < n; i++) {
      const float x = net->activations[layer][(size_t)s * n + i];
      net->deltas_before[(size_t)s * n + i] =
          (1 - x * x) * dot(net->weights[layer] + (size_t)i * n, net->deltas + (size_t)s * n, n);
    }
  float* swapped = net->deltas;
  net->deltas = net->deltas_before, net->deltas_before = swapped;
}

static void sum_over_copies(float* gradient, int count) {
  double begin = MPI_Wtime();
  MPI_Allreduce(MPI_IN_PLACE, gradient, count, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
  allreduce_seconds += MPI_Wtime() - begin;
}

static void backward(struct net* net) {
  for (int layer = net->layers - 1; layer >= 0; layer--) {
    take_gradient(net, layer);
    sum_over_copies(net->gradients[layer], net->n * net->n);
    if (layer > 0) go_back_through(net, layer);
  }
}

static void change_weights(struct net* net) {
  const float part = -kRate / (float)(net->batch * size);
  for (int layer = net->layers - 1; layer >= 0; layer--) /* in the order of their sums */
    add_multiple(net->weights[layer], part, net->gradients[layer], net->n * net->n);
}

/* ---- the run ---- */

static struct net make_net(const struct options* o) {
  struct net net = {.n = (int)o->width, .layers = (int)o->layers, .batch = (int)o->batch};
  const size_t square = (size_t)o->width * o->width, samples = (size_t)o->width * o->batch;
  net.weights = allocate((size_t)o->layers, sizeof *net.weights);
  net.gradients = allocate((size_t)o->layers, sizeof *net.gradients);
  net.activations = allocate((size_t)o->layers + 1, sizeof *net.activations);
  for (int layer = 0; layer < o->layers; layer++) {
    net.weights[layer] = allocate(square, sizeof(float));
    net.gradients[layer] = allocate(square, sizeof(float));
    for (size_t i = 0; i < square; i++)
      net.weights[layer][i] = uniform((uint64_t)layer * square + i) * sqrtf(3 / (float)o->width);
  }
  for (int layer = 0; layer <= o->layers; layer++) net.activations[layer] = allocate(samples, sizeof(float));
  net.deltas = allocate(samples, sizeof(float)), net.deltas_before = allocate(samples, sizeof(float));
  net.wanted = allocate(samples, sizeof(float));
  return net;
}

static void free_net(struct net* net) {
  for (int layer = 0; layer < net->layers; layer++) free(net->weights[layer]), free(net->gradients[layer]);
  for (int layer = 0; layer <= net->layers; layer++) free(net->activations[layer]);
  free(net->weights), free(net->gradients), free(net->activations);
  free(net->deltas), free(net->deltas_before), free(net->wanted);
}

/* Sums of the bits of all weights do not differ between ranks. */
static int all_copies_are_equal(const struct net* net) {
  uint64_t mine[2] = {0, 0}, most[2];
  for (int layer = 0; layer < net->layers; layer++)
    for (size_t i = 0; i < (size_t)net->n * net->n; i++) {
      uint32_t bits;
      memcpy(&bits, &net->weights[layer][i], sizeof bits);
      mine[0] = mix(mine[0] ^ bits);
    }
  mine[1] = ~mine[0]; /* its maximum tells the minimum of the first */
  MPI_Allreduce(mine, most, 2, MPI_UINT64_T, MPI_MAX, MPI_COMM_WORLD);
  return most[0] == ~most[1];
}

static double mean_over_ranks(double mine) {
  double sum;
  MPI_Allreduce(&mine, &sum, 1, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  return sum / size;
}

static struct options parse(int argc, char** argv) {
  struct options o = {.width = 128, .layers = 4, .batch = 32, .steps = 20};
  const struct whole_option known[] = {{"--width", 2, 20000, &o.width},
                                       {"--layers", 1, 1000, &o.layers},
                                       {"--batch", 1, 100000, &o.batch},
                                       {"--steps", 2, 1000000, &o.steps}};
  parse_whole_options(known, sizeof known / sizeof *known, argc, argv, kUsage);
  return o;
}

int main(int argc, char** argv) {
  program_name = "mlp";
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  const struct options o = parse(argc, argv);
  struct net net = make_net(&o);
  double first = 0, last = 0, seconds = 0;
  for (int step = 0; step < o.steps; step++) {
    draw(&net, ((uint64_t)step * (uint64_t)size + (uint64_t)rank) * (uint64_t)o.batch);
    double begin = MPI_Wtime();
    forward(&net);
    last = loss(&net);
    backward(&net);
    change_weights(&net);
    seconds += MPI_Wtime() - begin;
    if (step == 0) first = last;
  }
  first = mean_over_ranks(first), last = mean_over_ranks(last);
  end_if_wrong(!all_copies_are_equal(&net), "copies of the weights differ");
  end_if_wrong(!(last < first), "the net has learnt nothing");
  double mine[2] = {seconds / (double)o.steps, allreduce_seconds / (double)o.steps}, slowest[2];
  MPI_Reduce(mine, slowest, 2, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    printf("width %ld, layers %ld, batch %ld, ranks %d, steps %ld\n", o.width, o.layers, o.batch, size, o.steps);
    printf("error %.3f, %.3f at first\n", last, first);
    printf("seconds per step %.6f, of which in Allreduce %.6f\n", slowest[0], slowest[1]);
  }
  free_net(&net);
  MPI_Finalize();
  return 0;
}
