// SPDX-License-Identifier: BSD-3-Clause
// The kernel checks without a test framework, for machines that are only emulated (neon.sh).
#include <cstdio>

#include "reduce_check.hpp"

int main() {
  const std::vector<std::string> errors = reduce_check::check_all();
  for (const std::string& error : errors) std::printf("%s\n", error.c_str());
  std::printf("%s: %s\n", stretto::reduce::isa_name(),
              errors.empty() ? "every kernel does as the reference" : "FAILED");
  return errors.empty() ? 0 : 1;
}
