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
constinit pthread_mutex_t g_lock = PTHREAD_MUTEX_INITIALIZER;
constinit Rule g_rules[kRules] = {};
constinit int g_rule_count = 0;
constinit bool g_environment_read = false;
constinit std::uint64_t g_call_count = 0;
constinit std::uint64_t g_strike_count = 0;

struct FaultLock {
  FaultLock() { pthread_mutex_lock(&g_lock); }
  ~FaultLock() { pthread_mutex_unlock(&g_lock); }
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
    if (g_rule_count == kRules || !parse_rule(text, length, g_rules[g_rule_count])) return false;
    ++g_rule_count;
    text += length;
    if (*text == ',') ++text;
  }
  return true;
}

// A malformed rule stops the program. Otherwise a test with a typing error would get no fault, and
// pass without testing anything.
void read_environment() {
  g_environment_read = true;
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
  const FaultLock locked;
  if (!g_environment_read) read_environment();
  ++g_call_count;
  int error = 0;
  for (int i = 0; i < g_rule_count; ++i) {
    if (applies(g_rules[i], point) && error == 0) error = g_rules[i].error;
  }
  if (error != 0) ++g_strike_count;
  return error;
}

void fail_nth(std::uint64_t n, int error) {
  const FaultLock locked;
  g_environment_read = true;
  g_rules[0] = {{}, n, 0, error};
  g_rule_count = 1;
  g_call_count = g_strike_count = 0;
}

bool arm(const char* text) {
  const FaultLock locked;
  return arm_locked(text);
}

void disarm() {
  const FaultLock locked;
  g_environment_read = true;
  g_rule_count = 0;
  g_call_count = g_strike_count = 0;
}

std::uint64_t calls() {
  const FaultLock locked;
  return g_call_count;
}

std::uint64_t strikes() {
  const FaultLock locked;
  return g_strike_count;
}

}  // namespace stretto::sys::fault
#endif
