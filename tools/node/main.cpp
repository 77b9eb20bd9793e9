// SPDX-License-Identifier: BSD-3-Clause
// stretto-node-model: collectives on a played node, for `stretto model node`. Options:
//
//   --machine "KEY=VALUE ..."   machine.hpp has the keys
//   --cores 0,1,2               the core of each rank
//   --op NAME                   a collective; repeated: several
//   --bytes N                   likewise
//   --way ours|shm:NAME|SHAPE   "ours" is the library's, shm:NAME an algorithm of it; flags.hpp has
//                               the shapes; likewise
//   --warm N, --calls N         calls before counting, counted calls; 0: measure.hpp decides
//
// It writes one JSON object a line.
#include <cstdio>
#include <cstdlib>
#include <sstream>

#include "calls.hpp"
#include "measure.hpp"
#include "model/json.hpp"

namespace {

using namespace stretto::node;

[[noreturn]] void stop(const std::string& text) {
  std::fprintf(stderr, "stretto-node-model: %s\n", text.c_str());
  std::exit(2);
}

struct Options {
  Question question;
  std::vector<std::string> collectives, ways;
  std::vector<std::size_t> bytes;
};

std::vector<int> numbers(const std::string& text) {
  std::vector<int> all;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) all.push_back(std::atoi(word.c_str()));
  return all;
}

Options parse(int argc, char** argv) {
  Options options;
  if (argc % 2 == 0) stop("options come with a value each");
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--machine") {
      const std::string wrong = options.question.machine.read(value);
      if (!wrong.empty()) stop("--machine: " + wrong);
    } else if (name == "--cores") {
      options.question.cores = numbers(value);
    } else if (name == "--op") {
      options.collectives.push_back(value);
    } else if (name == "--bytes") {
      options.bytes.push_back(std::strtoull(value.c_str(), nullptr, 10));
    } else if (name == "--way") {
      options.ways.push_back(value);
    } else if (name == "--warm") {
      options.question.warm_calls = std::atoi(value.c_str());
    } else if (name == "--calls") {
      options.question.calls = std::atoi(value.c_str());
    } else {
      stop("unknown option " + name);
    }
  }
  const Question& question = options.question;
  if (question.machine.sockets == 0 || question.cores.empty() || options.collectives.empty())
    stop("--machine, --cores and --op are needed");
  for (const int core : question.cores) {
    if (core < 0 || core >= question.machine.cores()) stop("the machine has no core " + std::to_string(core));
  }
  if (question.cores.size() < 2) stop("at least two ranks are needed");
  if (options.bytes.empty()) options.bytes.push_back(8);
  if (options.ways.empty()) options.ways.emplace_back(kOurs);
  return options;
}

void write(const Question& question, const Answer& answer) {
  stretto::modelling::Json json;
  const Counts& counts = answer.counts;
  const auto each = [&](std::uint64_t count) { return static_cast<double>(count) / answer.calls; };
  json.open('{');
  json.key("op").text(question.collective);
  json.key("ranks").integer(static_cast<std::int64_t>(question.cores.size()));
  json.key("bytes").integer(static_cast<std::int64_t>(question.bytes));
  json.key("line_transfers").number(each(counts.transfers));
  json.key("most_readers").integer(counts.most_readers);
  json.key("crowded_lines").number(each(counts.crowded));
  json.key("socket_transfers").number(each(counts.socket_transfers));
  json.key("l3_transfers").number(each(counts.l3_transfers));
  json.key("invalidations").number(each(counts.invalidations));
  json.key("time_us").number(answer.last_ns / 1e3);
  json.key("mean_us").number(answer.mean_ns / 1e3);
  json.key("loop_us").number(answer.loop_ns / 1e3);
  json.key("way").text(answer.way);
  json.key("between").open('[');
  const int l3s = question.machine.l3s();
  for (int from = 0; from < l3s; ++from) {
    json.open('[');
    for (int to = 0; to < l3s; ++to) json.number(each(counts.between[from * l3s + to]));
    json.close(']');
  }
  json.close(']');
  json.close('}');
  json.end();
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  Options options = parse(argc, argv);
  Question& question = options.question;
  for (const std::string& collective : options.collectives) {
    for (const std::size_t bytes : options.bytes) {
      for (const std::string& way : options.ways) {
        question.collective = collective;
        question.bytes = is_barrier(collective) ? 0 : bytes;
        question.way = way;
        const Answer answer = measure(question);
        if (!answer.error.empty()) stop(answer.error);
        write(question, answer);
      }
      if (is_barrier(collective)) break;
    }
  }
}
