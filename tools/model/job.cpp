// SPDX-License-Identifier: BSD-3-Clause
// Recorded jobs:
//
//   job pack FILE RECORDING...        writes one file; says its bytes
//   job calls RANK RECORDING...       each call of a rank, a JSON object a line
//   job summary RECORDING...          what each rank and each place in the program took
//   job replay [OPTION]... -- RECORDING...
//       --costs FILE and where ranks are, as for predict: without costs the network is ideal
//       --eager BYTES --compute FACTOR --balance --by-processor
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "job_actions.hpp"
#include "job_replay.hpp"
#include "report.hpp"

namespace stretto::modelling {
namespace {

std::string text_of(const record::Text& text) { return text.text == nullptr ? "" : std::string(text.text, text.size); }

constexpr const char* kRoleNames[record::kRoles] = {
    "function", "place",  "thread",        "comm",   "destination", "source",    "send_tag", "receive_tag",
    "sends",    "receives", "root",        "sends_each", "receives_each", "made", "waited",  "ended",
    "flag",     "got",    "made_comm",     "window", "target",      "file",      "in_place", "commutes",
    "code",     "started", "partitions",   "element", "named"};

void write_calls(const JobFile& job, int rank) {
  if (rank < 0 || rank >= job.ranks()) stop("there is no rank " + std::to_string(rank));
  const record::Recording& recording = job.of(rank);
  record::Calls calls(recording);
  for (record::Calls::Call call; calls.next(&call);) {
    Json json;
    json.open('{');
    json.key("call").text(text_of(recording.function(call.term)));
    json.key("place").text(text_of(recording.place(call.term)));
    json.key("gap").number(call.gap);
    json.key("duration").number(call.duration);
    if (call.processor >= 0) json.key("processor").number(call.processor);
    for (int role = static_cast<int>(record::Role::thread); role < record::kRoles; ++role) {
      const record::Values values = recording.values(call.term, static_cast<record::Role>(role));
      if (!values) continue;
      json.key(kRoleNames[role]).open('[');
      for (const std::int64_t value : values) json.integer(value);
      json.close(']');
    }
    json.close('}');
    json.end();
  }
}

struct Place {
  std::uint64_t calls = 0, ranks = 0;
  double gap = 0, duration = 0, longest = 0;  // seconds of all ranks; of one call
};

void write_summary(const JobFile& job) {
  std::map<std::pair<std::string, std::string>, Place> places;
  Json json;
  json.open('{');
  json.key("ranks").open('[');
  for (int r = 0; r < job.ranks(); ++r) {
    const record::Recording& recording = job.of(r);
    std::vector<Place> terms(recording.terms());
    record::Calls calls(recording);
    double compute = 0, in_calls = 0, processor = 0;
    std::uint64_t count = 0;
    for (record::Calls::Call call; calls.next(&call);) {
      Place& term = terms[call.term];
      ++term.calls;
      term.gap += call.gap;
      term.duration += call.duration;
      term.longest = std::max(term.longest, call.duration);
      compute += call.gap;
      processor += call.processor >= 0 ? std::min(call.gap, call.processor) : call.gap;
      in_calls += call.duration;
      ++count;
    }
    for (std::uint32_t term = 0; term < recording.terms(); ++term) {
      if (terms[term].calls == 0) continue;
      Place& place = places[{text_of(recording.function(term)), text_of(recording.place(term))}];
      place.calls += terms[term].calls;
      place.gap += terms[term].gap;
      place.duration += terms[term].duration;
      place.longest = std::max(place.longest, terms[term].longest);
    }
    json.open('{');
    json.key("host").text(recording.header().host);
    json.key("finished").boolean(recording.header().finished != 0);
    json.key("calls").integer(static_cast<std::int64_t>(count));
    json.key("compute").number(compute);
    json.key("processor").number(processor);
    json.key("in_calls").number(in_calls);
    json.key("bytes").integer([&] {
      std::int64_t all = 0;
      for (int i = 0; i < record::kStreams; ++i)
        all += static_cast<std::int64_t>(recording.stream(static_cast<record::Stream>(i)).size);
      return all;
    }());
    json.close('}');
  }
  json.close(']');
  json.key("program").text(job.of(0).header().program);
  json.key("mpi").text(job.of(0).header().mpi);
  json.key("bound").number(job.of(0).header().bound);
  json.key("seconds").number(measured(job).seconds);
  json.key("places").open('[');
  for (const auto& [name, place] : places) {
    json.open('{');
    json.key("call").text(name.first);
    json.key("place").text(name.second);
    json.key("calls").integer(static_cast<std::int64_t>(place.calls));
    json.key("before").number(place.gap);
    json.key("in_calls").number(place.duration);
    json.key("longest").number(place.longest);
    json.close('}');
  }
  json.close(']');
  json.close('}');
  json.end();
}

void write_replayed(const Replayed& replayed) {
  Json json;
  json.open('{');
  json.key("seconds").number(replayed.seconds);
  json.key("calls").integer(static_cast<std::int64_t>(replayed.calls));
  json.key("messages").integer(static_cast<std::int64_t>(replayed.messages));
  json.key("bytes").integer(static_cast<std::int64_t>(replayed.bytes));
  if (!replayed.failure.empty()) json.key("failure").text(replayed.failure);
  json.key("ranks").open('[');
  for (const RankSummary& rank : replayed.ranks) {
    json.open('{');
    json.key("end").number(rank.end);
    json.key("compute").number(rank.compute);
    json.key("wait").number(rank.wait);
    json.close('}');
  }
  json.close(']');
  json.close('}');
  json.end();
}

double number_of(const std::string& name, const char* text) {
  char* end = nullptr;
  const double value = std::strtod(text, &end);
  if (end == text || *end != 0 || value < 0) stop(name + " must be a number that is not negative");
  return value;
}

void replay_job(const std::vector<std::string>& words) {
  ReplayOptions options;
  std::vector<std::string> files, rest{"stretto-model", "job"};
  std::size_t i = 0;
  for (; i < words.size() && words[i] != "--"; ++i) {
    const bool has_value = i + 1 < words.size();
    if (words[i] == "--balance")
      options.balance = true;
    else if (words[i] == "--by-processor")
      options.by_processor = true;
    else if (words[i] == "--compute" && has_value)
      options.compute = number_of(words[i], words[i + 1].c_str()), ++i;
    else if (words[i] == "--eager" && has_value)
      options.eager_bytes = static_cast<std::uint64_t>(number_of(words[i], words[i + 1].c_str())), ++i;
    else
      rest.push_back(words[i]);
  }
  for (++i; i < words.size(); ++i) files.push_back(words[i]);
  const JobFile job(files);
  std::vector<char*> line;
  line.reserve(rest.size());
  for (std::string& word : rest) line.push_back(word.data());
  const Request request = parse_request(static_cast<int>(line.size()), line.data());
  topo::Hierarchies place;
  select::Machine machine;
  if (!request.costs.empty()) {
    machine = make_machine(request, job.ranks(), place);
    options.machine = &machine;
    options.network = Network::machine;
  }
  write_replayed(replay(job, options));
}

}  // namespace

void job(int argc, char** argv) {
  std::vector<std::string> words(argv + std::min(argc, 3), argv + argc);
  const std::string command = argc > 2 ? argv[2] : "";
  const auto behind = [&](std::size_t first) {
    if (words.size() <= first) stop("job " + command + ": a word is missing");
    return std::vector<std::string>(words.begin() + static_cast<std::ptrdiff_t>(first), words.end());
  };
  if (command == "pack") {
    const std::uint64_t bytes = JobFile(behind(1)).pack(words[0]);
    Json json;
    json.open('{');
    json.key("bytes").integer(static_cast<std::int64_t>(bytes));
    json.close('}');
    json.end();
  } else if (command == "calls") {
    write_calls(JobFile(behind(1)), static_cast<int>(number_of("RANK", words[0].c_str())));
  } else if (command == "summary") {
    write_summary(JobFile(behind(0)));
  } else if (command == "replay") {
    replay_job(words);
  } else {
    stop("usage: stretto-model job pack|calls|summary|replay ...");
  }
}

}  // namespace stretto::modelling
