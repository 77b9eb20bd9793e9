// SPDX-License-Identifier: BSD-3-Clause
// k-means: kmeans [POINTS of each rank]
//
// Points lie around hidden centres. Rank 0 broadcasts first guesses. In each round ranks assign
// their points to the nearest guess. Allreduce adds up the points of each cluster and counts them:
// their means are the next guesses. In the end there must be a guess near each hidden centre.
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <random>
#include <vector>

constexpr int kClusters = 8, kDimensions = 4;
using Point = std::array<double, kDimensions>;

double distance(const Point& a, const Point& b) {
  double sum = 0;
  for (int d = 0; d < kDimensions; ++d) sum += (a[d] - b[d]) * (a[d] - b[d]);
  return sum;
}

int nearest(const std::vector<Point>& centres, const Point& point) {
  auto closer = [&](const Point& a, const Point& b) { return distance(a, point) < distance(b, point); };
  return static_cast<int>(std::min_element(centres.begin(), centres.end(), closer) - centres.begin());
}

// Corners of a cube: far from each other.
Point hidden_centre(int cluster) {
  Point corner{};
  for (int d = 0; d < kDimensions; ++d) corner[d] = (cluster >> d) & 1 ? 10 : 0;
  return corner;
}

std::vector<Point> points_of(int rank, int count) {
  std::mt19937 random(static_cast<unsigned>(rank) + 1);
  std::normal_distribution<double> spread;
  std::vector<Point> points;
  for (int i = 0; i < count; ++i) {
    points.push_back(hidden_centre(i % kClusters));
    for (double& x : points.back()) x += spread(random);
  }
  return points;
}

// What ranks add up: for each cluster the sum of its points, and how many they are.
struct Sums {
  std::array<Point, kClusters> sum{};
  std::array<double, kClusters> count{};
};

bool improve(std::vector<Point>& centres, const std::vector<Point>& points) {
  Sums sums;
  for (const Point& point : points) {
    const int cluster = nearest(centres, point);
    for (int d = 0; d < kDimensions; ++d) sums.sum[cluster][d] += point[d];
    ++sums.count[cluster];
  }
  MPI_Allreduce(MPI_IN_PLACE, &sums, sizeof sums / sizeof(double), MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
  double moved = 0;
  for (int c = 0; c < kClusters; ++c) {
    const Point before = centres[c];
    for (int d = 0; d < kDimensions; ++d) centres[c][d] = sums.sum[c][d] / std::max(sums.count[c], 1.0);
    moved = std::max(moved, distance(before, centres[c]));
  }
  return moved > 1e-12;
}

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  int rank = 0, ranks = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &ranks);
  const int count = argc > 1 ? std::max(std::atoi(argv[1]), kClusters) : 20000;
  const std::vector<Point> points = points_of(rank, count);

  const double begin = MPI_Wtime();
  std::vector<Point> centres(points.begin(), points.begin() + kClusters);
  MPI_Bcast(centres.data(), kClusters * kDimensions, MPI_DOUBLE, 0, MPI_COMM_WORLD);
  int rounds = 1;
  while (improve(centres, points) && rounds < 100) ++rounds;
  const double seconds = MPI_Wtime() - begin;

  bool right = true;
  for (int c = 0; c < kClusters; ++c) {
    const Point hidden = hidden_centre(c);
    right = right && distance(centres[nearest(centres, hidden)], hidden) < 1;
  }
  if (rank == 0)
    std::printf("kmeans: %d points, %d ranks: %s, %.3f s\n", ranks * count, ranks, right ? "right" : "wrong", seconds);
  MPI_Finalize();
  return right ? 0 : 1;
}
