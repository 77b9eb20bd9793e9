// SPDX-License-Identifier: BSD-3-Clause
// job replay [OPTION]... -- RECORDING...
//
//   --costs FILE and where ranks are, as for predict: without costs the network is ideal; without
//       places ranks are on their hosts
//   --was FILE        the costs of the machine that was recorded
//   --place slot|node|FILE   other places on these nodes, or those of a file
//                     (topo/placement_file.hpp)
//   --collectives recorded|mpi|stretto   the last with --rules FILE, if there is one
//                     (job_collectives.hpp)
//   --overlap         calls return early
//   --eager BYTES     messages above wait for their receive
//   --compute FACTOR --balance --by-processor
//   --noise FACTOR|recorded --seed N   computation takes longer by so much in the mean; or each gap
//                     is another one between the same calls
//   --resamples N     says how long N more replays take, in which gaps are as with --noise recorded
//   --critical        what is on the critical path
#include <algorithm>
#include <map>
#include <memory>

#include "job_places.hpp"
#include "job_replay.hpp"
#include "job_words.hpp"
#include "report.hpp"

namespace stretto::modelling {
namespace {

using By = CollectiveTimes::By;

struct WhatIf {
  Request request;
  std::string was, place;
  ReplayOptions options;
  By collectives = By::recorded;
  bool draws = false;  // --noise recorded
  int resamples = 0;
  std::vector<std::string> files;
};

By by_of(const std::string& name) {
  if (name == "recorded") return By::recorded;
  if (name == "mpi") return By::mpi;
  if (name != "stretto") stop("--collectives: recorded, mpi or stretto expected, not " + name);
  return By::rules;
}

// False: no option of a replay.
bool take_flag(WhatIf& what, const std::string& name) {
  ReplayOptions& options = what.options;
  const std::map<std::string, bool*> flags{{"--balance", &options.balance},
                                           {"--overlap", &options.overlap},
                                           {"--critical", &options.critical},
                                           {"--by-processor", &options.gaps.by_processor}};
  const auto found = flags.find(name);
  if (found != flags.end()) *found->second = true;
  return found != flags.end();
}

bool take_value(WhatIf& what, const std::string& name, const std::string& value) {
  ReplayOptions& options = what.options;
  if (name == "--was")
    what.was = value;
  else if (name == "--place")
    what.place = value;
  else if (name == "--collectives")
    what.collectives = by_of(value);
  else if (name == "--noise" && value == "recorded")
    what.draws = true;
  else if (name == "--noise")
    options.gaps.noise = number_of(name, value);
  else if (name == "--seed")
    options.gaps.seed = static_cast<std::uint64_t>(number_of(name, value));
  else if (name == "--resamples")
    what.resamples = static_cast<int>(number_of(name, value));
  else if (name == "--compute")
    options.gaps.compute = number_of(name, value);
  else if (name == "--eager")
    options.eager_bytes = static_cast<std::uint64_t>(number_of(name, value));
  else
    return false;
  return true;
}

WhatIf what_if_of(const std::vector<std::string>& words) {
  WhatIf what;
  std::vector<std::string> rest;
  OptionsAndFiles given = split_at_dashes(words);
  const std::vector<std::string>& options = given.options;
  for (auto word = options.begin(); word != options.end(); ++word) {
    if (take_flag(what, *word)) continue;
    if (word + 1 != options.end() && take_value(what, *word, word[1]))
      ++word;
    else
      rest.push_back(*word);
  }
  what.files = std::move(given.files);
  what.request = parse_job_request(std::move(rest));
  return what;
}

topo::Placement places_of(const JobFile& job, const WhatIf& what) {
  if (what.place.empty()) return placement_of_job(job, what.request);
  if (what.place == "slot" || what.place == "node") return dealt(placement_of_job(job, what.request), what.place);
  Request request = what.request;
  request.places = what.place;
  return placement_of_job(job, request);
}

std::unique_ptr<CollectiveTimes> collectives_of(const JobFile& job, const WhatIf& what) {
  Request was = what.request;
  was.costs = what.was;
  CollectiveTimes::Options options;
  options.by = what.collectives;
  if (!what.request.rules.empty()) options.rules = read_rules(what.request);
  return std::make_unique<CollectiveTimes>(JobMachine{what.request, places_of(job, what)},
                                           JobMachine{was, placement_of_job(job, was)}, std::move(options));
}

std::vector<double> resampled(const JobFile& job, const WhatIf& what, const std::vector<GapSample>& samples) {
  std::vector<double> seconds;
  ReplayOptions options = what.options;
  options.critical = false;
  options.gaps.samples = &samples;
  for (int i = 0; i < what.resamples; ++i) {
    ++options.gaps.seed;
    seconds.push_back(replay(job, options).seconds);
  }
  return seconds;
}

// ---- Answers ----

void write_ranks(Json& json, const Replayed& replayed) {
  json.key("ranks").open('[');
  for (const RankSummary& rank : replayed.ranks) {
    json.open('{');
    json.key("end").number(rank.end);
    json.key("compute").number(rank.compute);
    json.key("wait").number(rank.wait);
    json.close('}');
  }
  json.close(']');
}

void write_critical(Json& json, const JobFile& job, const Replayed& replayed) {
  json.key("critical").open('[');
  for (const Critical& each : replayed.critical) {
    json.open('{');
    json.key("rank").integer(each.rank);
    json.key("call").text(text_of(job.of(each.rank).function(each.term)));
    json.key("place").text(text_of(job.of(each.rank).place(each.term)));
    json.key("compute").number(each.compute);
    json.key("in_call").number(each.in_call);
    json.close('}');
  }
  json.close(']');
}

// Places of all ranks. Seconds are of a rank, in the mean.
void write_sites(Json& json, const JobFile& job, const Replayed& replayed) {
  std::map<std::pair<std::string, std::string>, SiteSummary> sites;
  for (int r = 0; r < job.ranks(); ++r) {
    const std::vector<SiteSummary>& of_rank = replayed.sites[static_cast<std::size_t>(r)];
    for (std::uint32_t term = 0; term < of_rank.size(); ++term) {
      if (of_rank[term].calls == 0) continue;
      SiteSummary& site = sites[{text_of(job.of(r).function(term)), text_of(job.of(r).place(term))}];
      site.calls += of_rank[term].calls;
      site.hidden += of_rank[term].hidden / job.ranks();
    }
  }
  json.key("sites").open('[');
  for (const auto& [name, site] : sites) {
    json.open('{');
    json.key("call").text(name.first);
    json.key("place").text(name.second);
    json.key("calls").integer(static_cast<std::int64_t>(site.calls));
    json.key("hidden").number(site.hidden);
    json.close('}');
  }
  json.close(']');
}

void write_counts(Json& json, const CollectiveTimes::Counts& counts) {
  json.key("collectives").open('{');
  for (std::size_t i = 0; i < counts.size(); ++i)
    json.key(CollectiveTimes::kHowNames[i]).integer(static_cast<std::int64_t>(counts[i]));
  json.close('}');
}

void write_answer(const JobFile& job, const Replayed& replayed, const CollectiveTimes::Counts& counts,
                  const std::vector<double>& resampled) {
  Json json;
  json.open('{');
  json.key("seconds").number(replayed.seconds);
  json.key("resampled").open('[');
  for (const double each : resampled) json.number(each);
  json.close(']');
  json.key("calls").integer(static_cast<std::int64_t>(replayed.calls));
  json.key("messages").integer(static_cast<std::int64_t>(replayed.messages));
  json.key("bytes").integer(static_cast<std::int64_t>(replayed.bytes));
  if (!replayed.failure.empty()) json.key("failure").text(replayed.failure);
  write_counts(json, counts);
  write_ranks(json, replayed);
  write_critical(json, job, replayed);
  write_sites(json, job, replayed);
  json.close('}');
  json.end();
}

}  // namespace

void replay_job(const std::vector<std::string>& words) {
  WhatIf what = what_if_of(words);
  const JobFile job(what.files);
  ReplayOptions& options = what.options;
  std::vector<GapSample> samples;
  for (int r = 0; r < job.ranks() && (what.draws || what.resamples > 0); ++r)
    samples.emplace_back(job.of(r), options.gaps.by_processor);
  if (what.draws) options.gaps.samples = &samples;
  topo::Hierarchies hierarchies;
  select::Machine machine;
  std::unique_ptr<CollectiveTimes> collectives;
  if (!what.request.costs.empty()) {
    expect_ranks(job.ranks());
    machine = make_machine(what.request, places_of(job, what), hierarchies);
    options.machine = &machine;
    collectives = collectives_of(job, what);
    options.collectives = collectives.get();
  }
  const Replayed replayed = replay(job, options);
  const CollectiveTimes::Counts counts = collectives ? collectives->counts() : CollectiveTimes::Counts{};
  const bool whole = replayed.failure.empty();
  write_answer(job, replayed, counts, whole ? resampled(job, what, samples) : std::vector<double>{});
}

}  // namespace stretto::modelling
