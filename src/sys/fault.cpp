// SPDX-License-Identifier: BSD-3-Clause
#include "sys/fault.hpp"

#if defined(STRETTO_FAULTS) && STRETTO_FAULTS
#include <pthread.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>

namespace stretto::sys::fault {
namespace {

constexpr int kRules = 16;
constexpr std::size_t kPointBytes = 48;

struct Rule {
  char point[kPointBytes];  // empty: every point
  std::uint64_t nth;        // 0: every call
  std::uint64_t seen;
  int error;
};

// One lock for everything: a fault build need not be fast, but counts must be exact.
constinit pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
constinit Rule rules[kRules] = {};
constinit int rule_count = 0;
constinit bool environment_read = false;
constinit std::uint64_t call_count = 0;
constinit std::uint64_t strike_count = 0;

struct Locked {
  Locked() { pthread_mutex_lock(&lock); }
  ~Locked() { pthread_mutex_unlock(&lock); }
};

int error_by_name(const char* name, std::size_t length) {
  for (int error = 1; error < 256; ++error) {
    const char* known = strerrorname_np(error);
    if (known && std::strlen(known) == length && std::memcmp(known, name, length) == 0) return error;
  }
  return 0;
}

// Reads a rule "point:n:ERROR" of `length` bytes.
bool parse_rule(const char* text, std::size_t length, Rule& rule) {
  const auto* first = static_cast<const char*>(std::memchr(text, ':', length));
  if (!first || first == text || static_cast<std::size_t>(first - text) >= kPointBytes) return false;
  const char* end = text + length;
  const auto* second = static_cast<const char*>(std::memchr(first + 1, ':', static_cast<std::size_t>(end - first - 1)));
  if (!second) return false;
  rule = {};
  std::memcpy(rule.point, text, static_cast<std::size_t>(first - text));
  if (second == first + 2 && first[1] == '*') {
    rule.nth = 0;
  } else {
    char* stop = nullptr;
    rule.nth = std::strtoull(first + 1, &stop, 10);
    if (stop != second || rule.nth == 0) return false;
  }
  rule.error = error_by_name(second + 1, static_cast<std::size_t>(end - second - 1));
  return rule.error != 0;
}

bool arm_locked(const char* text) {
  while (*text) {
    const std::size_t length = std::strcspn(text, ",");
    if (rule_count == kRules || !parse_rule(text, length, rules[rule_count])) return false;
    ++rule_count;
    text += length;
    if (*text == ',') ++text;
  }
  return true;
}

// A malformed rule stops the program. Otherwise a test with a typing error would get no fault, and
// pass without testing anything.
void read_environment() {
  environment_read = true;
  const char* text = std::getenv("STRETTO_FAULT");
  if (!text || arm_locked(text)) return;
  static constexpr char kMessage[] = "stretto: error: STRETTO_FAULT is not point:n:ERRNO[,...]\n";
  if (write(STDERR_FILENO, kMessage, sizeof kMessage - 1) < 0) { /* nothing left to tell */
  }
  std::abort();
}

bool applies(Rule& rule, const char* point) {
  if (rule.point[0] != 0 && std::strcmp(rule.point, point) != 0) return false;
  ++rule.seen;
  return rule.nth == 0 || rule.seen == rule.nth;
}

}  // namespace

int strike(const char* point) {
  const Locked locked;
  if (!environment_read) read_environment();
  ++call_count;
  int error = 0;
  for (int i = 0; i < rule_count; ++i) {
    if (applies(rules[i], point) && error == 0) error = rules[i].error;
  }
  if (error != 0) ++strike_count;
  return error;
}

void fail_nth(std::uint64_t n, int error) {
  const Locked locked;
  environment_read = true;
  rules[0] = {{}, n, 0, error};
  rule_count = 1;
  call_count = strike_count = 0;
}

bool arm(const char* text) {
  const Locked locked;
  return arm_locked(text);
}

void disarm() {
  const Locked locked;
  environment_read = true;
  rule_count = 0;
  call_count = strike_count = 0;
}

std::uint64_t calls() {
  const Locked locked;
  return call_count;
}

std::uint64_t strikes() {
  const Locked locked;
  return strike_count;
}

}  // namespace stretto::sys::fault
#endif
