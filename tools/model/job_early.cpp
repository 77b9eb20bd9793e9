// SPDX-License-Identifier: BSD-3-Clause
#include "job_early.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>

#include "job_clocks.hpp"
#include "job_collectives.hpp"
#include "job_comms.hpp"
#include "job_file.hpp"
#include "job_places.hpp"
#include "job_walk.hpp"
#include "job_words.hpp"
#include "report.hpp"

namespace stretto::modelling {
namespace {

enum class Why : std::uint8_t { none, one_node, is_short, never };
constexpr const char* kWhyNames[] = {"", "one_node", "short", "never"};

// Seconds of one rank.
struct Sums {
  double in_calls = 0, moving = 0, computing = 0, hidden = 0;
};

struct Site {
  std::uint64_t calls = 0, early = 0;  // of all ranks
  Why why = Why::none;                 // of those that are not early
  std::vector<Sums> of_rank;
};

// One rank's part of a collective.
struct Part {
  std::size_t rank = 0, position = 0;
  std::uint64_t bytes = 0;
  double begin = 0, end = 0, computing = 0;  // the last: from then to its next call
  Site* site = nullptr;
  bool is_root = false;
};

struct Meeting {
  std::vector<Part> parts;
  CollectiveCall call;  // without its bytes
  int ranks = 0, nodes = 0;
};

class EarlyCalls {
 public:
  EarlyCalls(const JobFile& job, topo::Placement places)
      : job_(job), places_(std::move(places)), comms_(static_cast<std::size_t>(job.ranks())) {}

  void run();
  void write() const;

 private:
  class RankVisitor;
  using MeetingKey = std::pair<std::uint32_t, std::uint32_t>;  // communicator, serial

  int nodes_at(std::uint32_t comm, const std::vector<int>& members);
  Site& site_of(std::size_t rank, std::uint32_t term);
  void settle(const Meeting& meeting);
  static std::uint64_t part_bytes(const Meeting& meeting);
  static double others_came(const Meeting& meeting, const Part& part);

  const JobFile& job_;
  const topo::Placement places_;
  Communicators comms_;
  std::unordered_map<std::uint32_t, int> nodes_;  // by the name of a communicator
  std::map<MeetingKey, Meeting> meetings_;
  std::map<std::pair<std::string, std::string>, Site> sites_;
  double seconds_ = 0;
};

class EarlyCalls::RankVisitor : public Visitor {
 public:
  RankVisitor(EarlyCalls& all, std::size_t rank)
      : all_(all), rank_(rank), recording_(all.job_.of(static_cast<int>(rank))) {}

  void enters(const Action& action, std::uint32_t term, double time, double end) override {
    if (last_ != nullptr) last_->computing = time - last_->end;
    last_ = nullptr;
    term_ = term;
    begin_ = time;
    end_ = end;
    blocks_ = action.act == Act::collective;
    makes_ = makes_comm(action) ? &action : nullptr;
  }
  void leaves(double time) override {
    all_.seconds_ = std::max(all_.seconds_, time);
    if (makes_ != nullptr) all_.comms_.make(rank_, recording_, makes_->comm, makes_->made_comm);
  }
  void computes(double /*seconds*/) override {}
  void sends(const WalkedMessage& /*message*/) override {}
  void receives(const WalkedMessage& /*message*/) override {}
  void waits(std::size_t /*message*/) override {}
  void meets(const Action& action, const std::vector<int>& members, int me) override {
    if (is_neighborhood(action.collective)) return;
    CommState& comm = all_.comms_.of(rank_, recording_, action.comm);
    const MeetingKey key{comm.name, comm.meetings++};
    if (!blocks_ || action.collective == Collective::count_ || members.size() < 2) return;
    Site& site = all_.site_of(rank_, term_);
    ++site.calls;
    site.of_rank[rank_].in_calls += end_ - begin_;
    const int ranks = static_cast<int>(members.size()), nodes = all_.nodes_at(comm.name, members);
    if (const Why why = why_not(action, ranks, nodes); why != Why::none) {
      site.why = why;
      return;
    }
    Meeting& meeting = all_.meetings_[key];
    meeting.call = {.collective = action.collective, .commutes = action.commutes};
    meeting.ranks = ranks;
    meeting.nodes = nodes;
    meeting.parts.reserve(members.size());  // so that `last_` stays where it is
    const bool is_root = is_rooted(action.collective) && action.root == me;
    meeting.parts.push_back({rank_, static_cast<std::size_t>(me), action.bytes, begin_, end_, 0, &site, is_root});
    last_ = &meeting.parts.back();
  }

 private:
  // By what the rank itself knows.
  static Why why_not(const Action& action, int ranks, int nodes) {
    constexpr std::uint64_t kLong = std::uint64_t{1} << 40;
    CollectiveCall call{.collective = action.collective, .bytes = kLong, .commutes = action.commutes};
    if (nodes < 2) return Why::one_node;
    if (!may_return_early(call, ranks, nodes)) return Why::never;
    if (has_own_lengths(action.collective)) return Why::none;
    call.bytes = action.bytes;
    return may_return_early(call, ranks, nodes) ? Why::none : Why::is_short;
  }
  static bool has_own_lengths(Collective collective) {
    return lengths_are_senders(collective) || collective == Collective::alltoallv ||
           collective == Collective::alltoallw;
  }

  EarlyCalls& all_;
  std::size_t rank_;
  const record::Recording& recording_;
  Part* last_ = nullptr;  // of the call before, if that may be early
  std::uint32_t term_ = 0;
  double begin_ = 0, end_ = 0;
  bool blocks_ = false;
  const Action* makes_ = nullptr;
};

int EarlyCalls::nodes_at(std::uint32_t comm, const std::vector<int>& members) {
  const auto [found, is_new] = nodes_.try_emplace(comm, 0);
  if (is_new) found->second = nodes_of(part_of(places_, members));
  return found->second;
}

Site& EarlyCalls::site_of(std::size_t rank, std::uint32_t term) {
  const record::Recording& recording = job_.of(static_cast<int>(rank));
  Site& site = sites_[{text_of(recording.function(term)), text_of(recording.place(term))}];
  site.of_rank.resize(static_cast<std::size_t>(job_.ranks()));
  return site;
}

// Of parts that have lengths of their own, the mean. A root knows all lengths.
std::uint64_t EarlyCalls::part_bytes(const Meeting& meeting) {
  std::uint64_t sum = 0;
  for (const Part& each : meeting.parts) {
    if (lengths_are_senders(meeting.call.collective) && each.is_root) return each.bytes;
    sum += each.bytes;
  }
  return sum / meeting.parts.size();
}

// When all had come for whom this rank waits.
double EarlyCalls::others_came(const Meeting& meeting, const Part& part) {
  const Collective collective = meeting.call.collective;
  const bool from_root = is_rooted(collective) && !goes_to_root(collective);
  double last = part.begin;
  for (const Part& each : meeting.parts) {
    const bool is_needed = from_root               ? each.is_root
                           : is_rooted(collective) ? part.is_root
                                                   : waits_for_all(collective) || each.position < part.position;
    if (is_needed) last = std::max(last, each.begin);
  }
  return last;
}

void EarlyCalls::settle(const Meeting& meeting) {
  CollectiveCall call = meeting.call;
  call.bytes = part_bytes(meeting);
  const bool goes_early = may_return_early(call, meeting.ranks, meeting.nodes);
  for (const Part& part : meeting.parts) {
    if (!goes_early || !returns_early_here(call, meeting.ranks, part.is_root)) {
      part.site->why = Why::is_short;
      continue;
    }
    const double moving = std::max(0.0, part.end - others_came(meeting, part));
    Sums& sums = part.site->of_rank[part.rank];
    ++part.site->early;
    sums.moving += moving;
    sums.computing += part.computing;
    sums.hidden += std::min(moving, part.computing);
  }
}

void EarlyCalls::run() {
  const std::vector<double> begin = starts_of(job_);
  for (int rank = 0; rank < job_.ranks(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    RankVisitor visitor(*this, r);
    walk(job_, rank, visitor, begin[r]);
  }
  for (const auto& [key, meeting] : meetings_) settle(meeting);
}

void EarlyCalls::write() const {
  std::vector<double> hidden(static_cast<std::size_t>(job_.ranks()));
  Json json;
  json.open('{');
  json.key("seconds").number(seconds_);
  json.key("nodes").integer(nodes_of(places_));
  json.key("sites").open('[');
  for (const auto& [name, site] : sites_) {
    const auto most = [&](double Sums::* which) {
      double found = 0;
      for (const Sums& each : site.of_rank) found = std::max(found, each.*which);
      return found;
    };
    for (std::size_t r = 0; r < hidden.size(); ++r) hidden[r] += site.of_rank[r].hidden;
    json.open('{');
    json.key("call").text(name.first);
    json.key("place").text(name.second);
    json.key("calls").integer(static_cast<std::int64_t>(site.calls));
    json.key("early").integer(static_cast<std::int64_t>(site.early));
    json.key("why").text(kWhyNames[static_cast<int>(site.why)]);
    json.key("in_calls").number(most(&Sums::in_calls));
    json.key("moving").number(most(&Sums::moving));
    json.key("computing").number(most(&Sums::computing));
    json.key("hidden").number(most(&Sums::hidden));
    json.close('}');
  }
  json.close(']');
  json.key("hidden").number(*std::max_element(hidden.begin(), hidden.end()));
  json.close('}');
  json.end();
}

}  // namespace

void early_job(const std::vector<std::string>& words) {
  const OptionsAndFiles given = split_at_dashes(words);
  const Request request = parse_job_request(given.options);
  const JobFile job(given.files);
  EarlyCalls calls(job, placement_of_job(job, request));
  calls.run();
  calls.write();
}

}  // namespace stretto::modelling
