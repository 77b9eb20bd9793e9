// SPDX-License-Identifier: BSD-3-Clause
// Recorded jobs:
//
//   job pack FILE RECORDING...        writes one file; says its bytes
//   job calls RANK RECORDING...       each call of a rank, a JSON object a line
//   job summary RECORDING...          what each rank and each place in the program took
//   job timeline SPANS MESSAGES RECORDING...   when each rank was in which call, at most so many
//                                     spans and messages (job_timeline.hpp)
//   job export FORMAT FILE RECORDING...   chrome, goal, ti or otf2 (job_export.hpp)
//   job import ANCHOR FILE            an OTF2 archive as a packed recording (job_import.hpp)
//   job scale RANKS FILE (-- RECORDING...)...   the same program on so many ranks (job_scale.hpp)
//   job early [OPTION]... -- RECORDING...   what could hide if calls returned early (job_early.hpp)
//   job tune [OPTION]... -- RECORDING...        its collectives and their schedules (job_tune.hpp)
//   job replay [OPTION]... -- RECORDING...   in virtual time (job_what_if.cpp has the options)
#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>

#include "job_actions.hpp"
#include "job_clocks.hpp"
#include "job_early.hpp"
#include "job_export.hpp"
#include "job_import.hpp"
#include "job_scale.hpp"
#include "job_timeline.hpp"
#include "job_tune.hpp"
#include "job_words.hpp"
#include "report.hpp"

namespace stretto::modelling {
namespace {

constexpr const char* kRoleNames[record::kRoles] = {
    "function", "place",    "thread",     "comm",       "destination",   "source", "send_tag", "receive_tag",
    "sends",    "receives", "root",       "sends_each", "receives_each", "made",   "waited",   "ended",
    "flag",     "got",      "made_comm",  "window",     "target",        "file",   "in_place", "commutes",
    "code",     "started",  "partitions", "element",    "named",         "group"};

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
  std::uint64_t calls = 0;
  double gap = 0, duration = 0, longest = 0;  // seconds of all ranks; of one call

  void add(const Place& other) {
    calls += other.calls;
    gap += other.gap;
    duration += other.duration;
    longest = std::max(longest, other.longest);
  }
};

using Places = std::map<std::pair<std::string, std::string>, Place>;  // by function and place

// What one rank took. Returns when it ended, in seconds from its begin.
double write_rank(Json& json, const record::Recording& recording, Places& places) {
  std::vector<Place> terms(recording.terms());
  record::Calls calls(recording);
  double compute = 0, in_calls = 0, processor = 0;
  std::uint64_t count = 0;
  for (record::Calls::Call call; calls.next(&call); ++count) {
    terms[call.term].add({1, call.gap, call.duration, call.duration});
    compute += call.gap;
    processor += call.processor >= 0 ? std::min(call.gap, call.processor) : call.gap;
    in_calls += call.duration;
  }
  for (std::uint32_t term = 0; term < recording.terms(); ++term) {
    if (terms[term].calls != 0)
      places[{text_of(recording.function(term)), text_of(recording.place(term))}].add(terms[term]);
  }
  std::int64_t bytes = 0;
  for (int i = 0; i < record::kStreams; ++i)
    bytes += static_cast<std::int64_t>(recording.stream(static_cast<record::Stream>(i)).size);
  json.open('{');
  json.key("host").text(recording.header().host);
  json.key("finished").boolean(recording.header().finished != 0);
  json.key("calls").integer(static_cast<std::int64_t>(count));
  json.key("compute").number(compute);
  json.key("processor").number(processor);
  json.key("in_calls").number(in_calls);
  json.key("bytes").integer(bytes);
  json.close('}');
  return compute + in_calls;
}

void write_summary(const JobFile& job) {
  Places places;
  double seconds = 0;
  const std::vector<double> begin = starts_of(job);
  Json json;
  json.open('{');
  json.key("ranks").open('[');
  for (int r = 0; r < job.ranks(); ++r)
    seconds = std::max(seconds, begin[static_cast<std::size_t>(r)] + write_rank(json, job.of(r), places));
  json.close(']');
  json.key("program").text(job.of(0).header().program);
  json.key("mpi").text(job.of(0).header().mpi);
  json.key("bound").number(job.of(0).header().bound);
  json.key("seconds").number(seconds);
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

void say_unknown(std::uint64_t calls) {
  Json json;
  json.open('{');
  json.key("unknown").integer(static_cast<std::int64_t>(calls));
  json.close('}');
  json.end();
}

void export_job(const std::vector<std::string>& words, const std::vector<std::string>& files) {
  const auto exported = words[0] == "chrome" ? export_chrome
                        : words[0] == "goal" ? export_goal
                        : words[0] == "ti"   ? export_ti
                                             : nullptr;
  if (words[0] == "otf2") return say_unknown(export_otf2(JobFile(files), words[1]));
  if (exported == nullptr) stop("job export: chrome, goal, ti or otf2 expected, not " + words[0]);
  const JobFile job(files);
  std::FILE* const file = std::fopen(words[1].c_str(), "w");
  if (file == nullptr) stop(words[1] + " cannot be written");
  const std::uint64_t unknown = exported(job, file);
  const bool good = std::ferror(file) == 0;
  if (std::fclose(file) != 0 || !good) stop(words[1] + " cannot be written");
  say_unknown(unknown);
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
    write_calls(JobFile(behind(1)), static_cast<int>(number_of("RANK", words[0])));
  } else if (command == "summary") {
    write_summary(JobFile(behind(0)));
  } else if (command == "timeline") {
    const std::vector<std::string> files = behind(2);
    write_timeline(JobFile(files), static_cast<std::size_t>(number_of("SPANS", words[0])),
                   static_cast<std::size_t>(number_of("MESSAGES", words[1])));
  } else if (command == "export") {
    export_job(words, behind(2));
  } else if (command == "import") {
    (void)behind(1);
    import_job(words);
  } else if (command == "scale") {
    (void)behind(2);
    scale_job(words);
  } else if (command == "early") {
    early_job(words);
  } else if (command == "tune") {
    tune_job(words);
  } else if (command == "replay") {
    replay_job(words);
  } else {
    stop("usage: stretto-model job pack|calls|summary|timeline|early|export|import|scale|tune|replay ...");
  }
}

}  // namespace stretto::modelling
