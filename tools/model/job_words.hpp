// SPDX-License-Identifier: BSD-3-Clause
// Words of the command line and of recordings, for the commands about recorded jobs.
#pragma once
#include <cstdlib>
#include <string>
#include <vector>

#include "record/reader.hpp"
#include "request.hpp"

namespace stretto::modelling {

inline std::string text_of(const record::Text& text) {
  return text.text == nullptr ? "" : std::string(text.text, text.size);
}

inline double number_of(const std::string& name, const std::string& text) {
  char* end = nullptr;
  const double value = std::strtod(text.c_str(), &end);
  if (end == text.c_str() || *end != 0 || value < 0) stop(name + " must be a number that is not negative");
  return value;
}

// `job replay` (job_what_if.cpp).
void replay_job(const std::vector<std::string>& words);

}  // namespace stretto::modelling
