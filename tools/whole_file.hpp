// SPDX-License-Identifier: BSD-3-Clause
// Whole files, also of /proc, whose process may end meanwhile.
#pragma once
#include <fstream>
#include <sstream>
#include <string>

namespace stretto {

// What is in a file. Empty if it cannot be read, as where its process has ended.
inline std::string whole_file(const std::string& path) {
  const std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();  // an iterator over the buffer would throw what this operator takes for the end
  return text.str();
}

}  // namespace stretto
