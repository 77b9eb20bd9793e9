// SPDX-License-Identifier: BSD-3-Clause
#include "top/stacks.hpp"

#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

#include "model/json.hpp"
#include "observe/stacks.hpp"
#include "top/find.hpp"

namespace stretto::top {
namespace {

using modelling::Json;

std::string name_of(int pid, int thread) {
  std::ifstream file("/proc/" + std::to_string(pid) + "/task/" + std::to_string(thread) + "/comm");
  std::string name;
  std::getline(file, name);
  return name;
}

void say_thread(Json& json, int pid, int thread) {
  shm::StackText stack;
  observe::stack_of(pid, thread, false, &stack);
  json.open('{');
  json.key("thread").integer(thread);
  json.key("name").text(name_of(pid, thread));
  const bool failed = stack.text[0] == '!';
  json.key("error");
  if (failed)
    json.text(stack.text + 1);
  else
    json.null();
  json.key("frames").open('[');
  std::istringstream lines(failed ? "" : stack.text);
  for (std::string line; std::getline(lines, line);) json.text(line);
  json.close(']');
  json.close('}');
}

}  // namespace

int write_stacks(const std::vector<int>& pids) {
  Json json;
  json.open('{');
  json.key("processes").open('[');
  for (const int pid : pids) {
    json.open('{');
    json.key("pid").integer(pid);
    json.key("command").text(command_of(pid));
    json.key("threads").open('[');
    for (const int thread : threads_of(pid)) say_thread(json, pid, thread);
    json.close(']');
    json.close('}');
  }
  json.close(']');
  json.close('}');
  std::putchar('\n');
  return 0;
}

}  // namespace stretto::top
