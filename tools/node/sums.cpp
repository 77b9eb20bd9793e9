// SPDX-License-Identifier: BSD-3-Clause
// A sum as the library's kernels make it, vector by vector. It is not instrumented, so that an
// access to shared memory counts once a line.
#include "calls.hpp"
#include "node.hpp"

namespace stretto::node {

void add_doubles(void* out, const void* left, const void* right, std::size_t count) {
  const std::size_t bytes = count * sizeof(double);
  touch(left, bytes, Node::Kind::load);
  touch(right, bytes, Node::Kind::load);
  const auto* a = static_cast<const double*>(left);
  const auto* b = static_cast<const double*>(right);
  auto* sum = static_cast<double*>(out);
  for (std::size_t i = 0; i < count; ++i) sum[i] = a[i] + b[i];
  touch(out, bytes, Node::Kind::store);
}

}  // namespace stretto::node
