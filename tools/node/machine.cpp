// SPDX-License-Identifier: BSD-3-Clause
#include "machine.hpp"

#include <cstdlib>
#include <map>
#include <sstream>
#include <variant>

namespace stretto::node {

std::string Machine::read(const std::string& words) {
  using Field = std::variant<int*, double*>;
  std::map<std::string, Field> missing = {
      {"sockets", &sockets},
      {"numa_per_socket", &numa_per_socket},
      {"l3_per_numa", &l3_per_numa},
      {"cores_per_l3", &cores_per_l3},
      {"same_l3", &same_l3},
      {"same_numa", &same_numa},
      {"same_socket", &same_socket},
      {"other_socket", &other_socket},
      {"memory", &memory},
      {"memory_far", &memory_far},
      {"further_reader_l3", &further_reader_l3},
      {"further_reader", &further_reader},
      {"further_owner", &further_owner},
      {"hit", &hit},
      {"own_access", &own_access},
      {"look_again", &look_again},
      {"pause", &pause},
      {"gap_into_l3", &gap_into_l3},
      {"gap_out_of_l3", &gap_out_of_l3},
      {"gap_between_sockets", &gap_between_sockets},
      {"misses_under_way", &misses_under_way},
      {"misses_of_copy", &misses_of_copy},
      {"l2_kib", &l2_kib},
      {"l3_mib", &l3_mib},
      {"is_amd", &is_amd},
  };
  std::istringstream stream(words);
  for (std::string word; stream >> word;) {
    const std::size_t equals = word.find('=');
    const auto found = missing.find(word.substr(0, equals));
    if (equals == std::string::npos || found == missing.end()) return "unknown or repeated: " + word;
    const double value = std::strtod(word.c_str() + equals + 1, nullptr);
    if (int** whole = std::get_if<int*>(&found->second))
      **whole = static_cast<int>(value);
    else
      *std::get<double*>(found->second) = value;
    missing.erase(found);
  }
  if (!missing.empty()) return "missing: " + missing.begin()->first;
  if (sockets < 1 || numa_per_socket < 1 || l3_per_numa < 1 || cores_per_l3 < 1 || cores() > kMostCores)
    return "a machine has 1 to " + std::to_string(kMostCores) + " cores";
  if (misses_under_way < 1 || misses_of_copy < misses_under_way) return "a core has at least one miss under way";
  return "";
}

}  // namespace stretto::node
