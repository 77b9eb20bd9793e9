// SPDX-License-Identifier: BSD-3-Clause
#include "base/output_path.hpp"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "sys/sys.hpp"

namespace stretto {
namespace {

constexpr std::size_t kPartBytes = 256;

// The first of these variables that says something.
template <std::size_t n>
const char* first_of(const char* const (&names)[n]) {
  for (const char* const name : names) {
    const char* const value = std::getenv(name);
    if (value != nullptr && *value != 0) return value;
  }
  return nullptr;
}

void number_or(const char* text, unsigned long long number, char (&part)[kPartBytes]) {
  if (text != nullptr) {
    std::snprintf(part, sizeof part, "%s", text);
  } else {
    std::snprintf(part, sizeof part, "%llu", number);
  }
}

void now_as(const char* form, char (&part)[kPartBytes]) {
  const std::time_t now = std::time(nullptr);
  std::tm local = {};
  if (localtime_r(&now, &local) == nullptr || std::strftime(part, sizeof part, form, &local) == 0) part[0] = 0;
}

bool fill(char letter, char (&part)[kPartBytes]) {
  constexpr const char* kUsers[] = {"USER", "LOGNAME"};
  constexpr const char* kSteps[] = {"SLURM_STEP_ID"};
  constexpr const char* kJobs[] = {"SLURM_JOB_ID", "PBS_JOBID", "LSB_JOBID", "FLUX_JOB_ID", "JOB_ID"};
  switch (letter) {
    case 'u': number_or(first_of(kUsers), sys::user_id(), part); break;
    case 'j': number_or(first_of(kJobs), static_cast<unsigned>(sys::process_id()), part); break;
    case 's': number_or(first_of(kSteps), 0, part); break;
    case 'h':
      sys::host_name(part, sizeof part);
      part[std::strcspn(part, ".")] = 0;
      break;
    case 'd': now_as("%Y-%m-%d", part); break;
    case 't': now_as("%H%M%S", part); break;
    case 'p': number_or(nullptr, static_cast<unsigned>(sys::process_id()), part); break;
    case '%': std::strcpy(part, "%"); break;
    default: return false;
  }
  for (char* c = part; *c != 0; ++c) {
    if (*c == '/') *c = '_';
  }
  return true;
}

}  // namespace

bool output_path(const char* pattern, char* path, std::size_t capacity) {
  std::size_t length = 0;
  path[0] = 0;
  for (const char* c = pattern; *c != 0; ++c) {
    char part[kPartBytes] = {*c};
    if (*c == '%' && !fill(*++c, part)) return false;
    const std::size_t bytes = std::strlen(part);
    if (length + bytes >= capacity) return false;
    std::memcpy(path + length, part, bytes + 1);
    length += bytes;
  }
  return true;
}

}  // namespace stretto
