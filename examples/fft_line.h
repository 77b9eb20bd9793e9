/* SPDX-License-Identifier: BSD-3-Clause */
/* The Fourier transform of a line of complex numbers, of any length: fast where its prime factors are
 * small. No MPI in here. */
#ifndef STRETTO_EXAMPLES_FFT_LINE_H
#define STRETTO_EXAMPLES_FFT_LINE_H
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "support.h"

enum { MOST_FACTORS = 32, LINES_AT_ONCE = 8 };
static const double kPi = 3.14159265358979323846;

struct complex_number {
  double re, im;
};
typedef struct complex_number cplx;

static inline cplx times(cplx a, cplx b) { return (cplx){a.re * b.re - a.im * b.im, a.re * b.im + a.im * b.re}; }
static inline cplx plus(cplx a, cplx b) { return (cplx){a.re + b.re, a.im + b.im}; }
static inline cplx minus(cplx a, cplx b) { return (cplx){a.re - b.re, a.im - b.im}; }

struct line_plan {
  int n, factors[MOST_FACTORS];
  cplx* root; /* root[k] = exp(-2 pi i k / n) */
  cplx *in, *out, *some;
};

static inline struct line_plan plan_line(int n) {
  struct line_plan p = {.n = n};
  int count = 0, rest = n;
  for (int f = 2; rest > 1; f++)
    for (; rest % f == 0; rest /= f) p.factors[count++] = f;
  p.root = allocate((size_t)n, sizeof(cplx));
  for (int k = 0; k < n; k++) p.root[k] = (cplx){cos(2 * kPi * k / n), -sin(2 * kPi * k / n)};
  p.in = allocate((size_t)n * LINES_AT_ONCE, sizeof(cplx));
  p.out = allocate((size_t)n, sizeof(cplx));
  p.some = allocate((size_t)n, sizeof(cplx));
  return p;
}

static inline void free_line(struct line_plan* p) { free(p->root), free(p->in), free(p->out), free(p->some); }

static inline cplx root_of(const struct line_plan* p, int64_t k, int n, int sign) {
  cplx w = p->root[k % n * (p->n / n)];
  return (cplx){w.re, sign * w.im};
}

/* Decimation in time. `n` is what is left of the length after `level` factors were taken off it, and
 * `stride` the distance between the elements of this part. */
static inline void transform_part(struct line_plan* p, const cplx* in, cplx* out, int n, int stride, int level,
                                  int sign) {
  if (n == 1) {
    *out = *in;
    return;
  }
  const int f = p->factors[level], m = n / f;
  for (int k = 0; k < f; k++) transform_part(p, in + (size_t)k * stride, out + k * m, m, stride * f, level + 1, sign);
  if (f == 2) {
    for (int j = 0; j < m; j++) {
      cplx even = out[j], odd = times(out[m + j], root_of(p, j, n, sign));
      out[j] = plus(even, odd);
      out[m + j] = minus(even, odd);
    }
    return;
  }
  for (int j = 0; j < m; j++) {
    for (int k = 0; k < f; k++) p->some[k] = times(out[k * m + j], root_of(p, (int64_t)k * j, n, sign));
    for (int q = 0; q < f; q++) {
      cplx sum = p->some[0];
      for (int k = 1; k < f; k++) sum = plus(sum, times(p->some[k], root_of(p, (int64_t)k * q, f, sign)));
      out[q * m + j] = sum;
    }
  }
}

/* The transform of a line of elements that lie together. sign 1: forward, -1: backward, times n. */
static inline void transform_line(struct line_plan* p, cplx* line, int sign) {
  transform_part(p, line, p->out, p->n, 1, 0, sign);
  memcpy(line, p->out, (size_t)p->n * sizeof(cplx));
}

/* `lines` neighbouring lines, whose elements are `stride` apart. */
static inline void transform_lines(struct line_plan* p, cplx* first, int lines, size_t stride, int sign) {
  for (int i = 0; i < p->n; i++)
    for (int l = 0; l < lines; l++) p->in[l * p->n + i] = first[(size_t)i * stride + l];
  for (int l = 0; l < lines; l++) transform_line(p, p->in + l * p->n, sign);
  for (int i = 0; i < p->n; i++)
    for (int l = 0; l < lines; l++) first[(size_t)i * stride + l] = p->in[l * p->n + i];
}

#endif
