// SPDX-License-Identifier: BSD-3-Clause
#include "sched/goal.hpp"

namespace stretto::sched {
namespace {

unsigned long long nanoseconds(const Pieces<Work>& pieces, std::uint64_t bytes) {
  return static_cast<unsigned long long>(pieces.at(bytes).over(bytes) + 0.5);
}

}  // namespace

void GoalWriter::step(std::size_t index, const Step& step) {
  const std::uint64_t bytes = step.length * unit_bytes_;
  const auto length = static_cast<unsigned long long>(bytes);
  switch (step.kind) {
    case Kind::send:
      std::fprintf(to_, "l%zu: send %llub to %d tag %u\n", index, length, step.peer, step.message_index);
      break;
    case Kind::recv:
      std::fprintf(to_, "l%zu: recv %llub from %d tag %u\n", index, length, step.peer, step.message_index);
      break;
    case Kind::recv_reduce:
      std::fprintf(to_, "r%zu: recv %llub from %d tag %u\n", index, length, step.peer, step.message_index);
      std::fprintf(to_, "l%zu: calc %llu\nl%zu requires r%zu\n", index, nanoseconds(costs_.reduce, bytes), index,
                   index);
      break;
    case Kind::copy: std::fprintf(to_, "l%zu: calc %llu\n", index, nanoseconds(costs_.copy, bytes)); break;
    case Kind::reduce: std::fprintf(to_, "l%zu: calc %llu\n", index, nanoseconds(costs_.reduce, bytes)); break;
  }
}

void GoalWriter::rank(int rank, const Schedule& schedule) {
  std::fprintf(to_, "\nrank %d {\n", rank);
  for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
    const Step& each = schedule.steps[i];
    step(i + 1, each);
    const char first = each.kind == Kind::recv_reduce ? 'r' : 'l';
    for (const std::uint32_t on : schedule.dependencies_of(each))
      std::fprintf(to_, "%c%zu requires l%u\n", first, i + 1, on + 1);
  }
  std::fprintf(to_, "}\n");
}

}  // namespace stretto::sched
