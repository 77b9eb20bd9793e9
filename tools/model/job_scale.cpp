// SPDX-License-Identifier: BSD-3-Clause
#include "job_scale.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>

#include "job_words.hpp"
#include "json.hpp"
#include "record/writer.hpp"
#include "scale_plan.hpp"

namespace stretto::modelling {
namespace {

using record::PeerKind;
using record::Role;
using record::Values;

// Calls before which a rank computes for less of all computation change as all computation does:
// what is short is mostly noise.
constexpr double kShortPart = 0.005;

// Ranks of a class, in order.
std::vector<int> members_of_class(const RankClasses& classes, int of_class, int ranks) {
  std::vector<int> members;
  for (int rank = 0; rank < ranks; ++rank) {
    if (classes.of(ranks, rank) == of_class) members.push_back(rank);
  }
  return members;
}

// Law of all computation of a class.
class Scaled {
 public:
  Scaled(const ScalePlan& plan, int ranks) : plan_(plan), ranks_(ranks), was_(plan.reference().file->ranks()) {
    for (const auto& [number, its] : plan.all()) {
      double all = 0, now = 0;
      for (const ScaledCall& call : its.calls) all += call.seconds;
      for (const ScaledCall& call : its.calls) {
        if (is_long(call, all)) now += call.seconds * ratio(call.gap);
      }
      double long_ones = 0;
      for (const ScaledCall& call : its.calls) long_ones += is_long(call, all) ? call.seconds : 0;
      totals_[number] = {all, long_ones > 0 ? now / long_ones : 1};
    }
  }

  [[nodiscard]] double ratio(const Law& law) const { return law.at(was_) > 0 ? law.at(ranks_) / law.at(was_) : 1; }
  [[nodiscard]] double gap_ratio(int of_class, const ScaledCall& call) const {
    const Total& total = totals_.at(of_class);
    return is_long(call, total.seconds) ? ratio(call.gap) : total.ratio;
  }
  [[nodiscard]] int ranks() const { return ranks_; }
  [[nodiscard]] const ScalePlan& plan() const { return plan_; }

 private:
  struct Total {
    double seconds, ratio;
  };
  static bool is_long(const ScaledCall& call, double all) { return call.seconds > kShortPart * all; }

  const ScalePlan& plan_;
  int ranks_, was_;
  std::map<int, Total> totals_;
};

// Writes one rank of the new job, after the rank of the reference that stands for it.
class ScaledWriter {
 public:
  ScaledWriter(const Scaled& scaled, int rank, const std::string& path)
      : scaled_(scaled), plan_(scaled.plan()), rank_(rank), class_(plan_.classes().of(scaled.ranks(), rank)) {
    const int ranks = scaled.ranks(), of_reference = plan_.reference().file->ranks();
    const std::vector<int> now = members_of_class(plan_.classes(), class_, ranks);
    const std::vector<int> then = members_of_class(plan_.classes(), class_, of_reference);
    const auto place = static_cast<std::size_t>(std::find(now.begin(), now.end(), rank) - now.begin());
    after_ = then[place * then.size() / now.size()];
    recording_ = &plan_.reference().file->of(after_);
    const record::Header& header = recording_->header();
    const std::string host = host_of_rank(rank);
    const record::About about{rank, ranks, 0, host.c_str(), header.mpi, header.program, ""};
    if (const int error = writer_.open(path.c_str(), about)) stop(path + ": " + std::strerror(error));
    for (const record::Communicator& comm : recording_->communicators()) define_comm(comm.id);
    define_texts(record::Definition::function, recording_->functions());
    define_texts(record::Definition::place, recording_->places());
  }

  std::uint64_t write() {
    std::size_t call = 0, loop = 0;
    add(plan_.reference().ranks[static_cast<std::size_t>(after_)].body, 0, call, loop);
    writer_.set_clock(0, std::max<std::uint64_t>(1, passed_));
    if (writer_.failure() != 0)
      stop(std::string("the recording cannot be written: ") + std::strerror(writer_.failure()));
    writer_.finish();
    return calls_;
  }

 private:
  // Hosts have as many ranks as in the reference, one after the other, or in turn.
  [[nodiscard]] std::string host_of_rank(int rank) const {
    const JobFile& file = *plan_.reference().file;
    std::set<std::string> hosts;
    for (int r = 0; r < file.ranks(); ++r) hosts.insert(file.of(r).header().host);
    const int on_each = std::max(1, file.ranks() / static_cast<int>(hosts.size()));
    const bool in_turn = std::strcmp(file.of(0).header().host, file.of(1).header().host) != 0;
    const int count = (scaled_.ranks() + on_each - 1) / on_each;
    return "host " + std::to_string(in_turn ? rank % count : rank / on_each);
  }
  void define_comm(std::int64_t id) {
    const CommRule& rule = plan_.comm(id);
    const int ranks = scaled_.ranks();
    const std::int64_t values[] = {id,
                                   0,
                                   rule.place(ranks, rank_),
                                   rule.size(ranks),
                                   0,
                                   rule.first(ranks, rank_),
                                   rule.step(ranks),
                                   rule.size(ranks)};
    writer_.define(record::Definition::comm, values, std::size(values));
  }
  void define_texts(record::Definition kind, const Array<record::Text>& texts) {
    for (const record::Text& text : texts) writer_.define(kind, text.number, text_of(text).c_str());
  }

  [[nodiscard]] std::size_t turns_of(const ScaledLoop& loop, const LoopNode& node) const {
    if (loop.turns) return static_cast<std::size_t>(std::max<std::int64_t>(0, loop.turns->at(scaled_.ranks())));
    if (loop.as_recorded) return node.turns.size();
    return static_cast<std::size_t>(std::lround(static_cast<double>(node.turns.size()) * scaled_.ratio(loop.about)));
  }

  void add(const LoopBody& body, int turn, std::size_t& call, std::size_t& loop) {
    const ScaledClass& its = plan_.of(class_);
    for (const LoopNode& node : body) {
      if (!node.is_loop()) {
        const ScaleStep& step = plan_.reference().ranks[static_cast<std::size_t>(after_)].steps[node.step];
        write_call(its.calls[call++], step, turn);
        continue;
      }
      if (plan_.unrolls(node)) {
        for (const LoopBody& each : node.turns) add(each, turn, call, loop);
        continue;
      }
      const std::size_t turns = turns_of(its.loops[loop++], node);
      const std::size_t first_call = call, first_loop = loop;
      for (std::size_t i = 0; i < turns; ++i) {
        call = first_call;
        loop = first_loop;
        add(node.turns[i * node.turns.size() / turns], static_cast<int>(i), call, loop);
      }
      if (turns == 0) skip(node.turns.front(), call, loop);
    }
  }
  // The numbers of what is behind a loop without turns.
  void skip(const LoopBody& body, std::size_t& call, std::size_t& loop) const {
    for (const LoopNode& node : body) {
      if (!node.is_loop()) {
        ++call;
      } else if (plan_.unrolls(node)) {
        for (const LoopBody& each : node.turns) skip(each, call, loop);
      } else {
        ++loop;
        skip(node.turns.front(), call, loop);
      }
    }
  }

  void list(Role role, const std::vector<std::int64_t>& values) {
    words_.push_back(static_cast<std::int64_t>(role));
    words_.push_back(static_cast<std::int64_t>(values.size()));
    words_.insert(words_.end(), values.begin(), values.end());
  }

  void write_call(const ScaledCall& call, const ScaleStep& step, int turn) {
    words_.clear();
    const std::int64_t comm = recording_->values(step.term, Role::comm).one();
    const int size = plan_.comm(comm).size(scaled_.ranks()), me = plan_.comm(comm).place(scaled_.ranks(), rank_);
    const auto peer_at = [&](const std::optional<PeerRule>& rule) { return rule ? rule->at(size, me, turn) : kNoPeer; };
    const int to = peer_at(call.destination), from = peer_at(call.source);
    for (int i = 0; i < record::kRoles; ++i) {
      const auto role = static_cast<Role>(i);
      const Values its = recording_->values(step.term, role);
      if (!its) continue;
      switch (role) {
        case Role::destination: list(role, {peer_word(to, me)}); break;
        case Role::source: list(role, {peer_word(from, me)}); break;
        case Role::root: list(role, {peer_at(call.root)}); break;
        case Role::send_tag: list(role, {tag(call.send_tag, turn, me, to)}); break;
        case Role::receive_tag: list(role, {tag(call.receive_tag, turn, me, from)}); break;
        case Role::sends:
        case Role::receives: list(role, {scaled_bytes(call, its.one())}); break;
        case Role::sends_each:
        case Role::receives_each: list(role, even(call, its, size)); break;
        case Role::made:
        case Role::waited:
        case Role::started:
        case Role::named:
        case Role::ended: list(role, slots(call.slots.at(role), its, turn)); break;
        default: list(role, {its.begin(), its.end()});
      }
    }
    const auto ns = [&](double seconds) { return static_cast<std::uint64_t>(std::llround(seconds * 1e9)); };
    const std::uint64_t gap = ns(step.gap * scaled_.gap_ratio(class_, call));
    const std::uint64_t duration = ns(step.duration * scaled_.ratio(call.duration));
    writer_.call(writer_.term(words_.data(), words_.size()), gap, duration);
    passed_ += gap + duration;
    ++calls_;
  }

  static std::int64_t peer_word(int peer, int me) {
    return peer == kNoPeer ? record::peer_word(PeerKind::none) : record::peer_word(PeerKind::rank, peer - me);
  }
  static std::int64_t tag(const TagRule& rule, int turn, int me, int peer) {
    switch (rule.form) {
      case TagRule::Form::constant: return rule.beside;
      case TagRule::Form::turn: return turn + rule.beside;
      case TagRule::Form::me: return me + rule.beside;
      case TagRule::Form::peer: return peer + rule.beside;
    }
    return 0;
  }
  [[nodiscard]] std::int64_t scaled_bytes(const ScaledCall& call, std::int64_t bytes) const {
    return std::llround(static_cast<double>(bytes) * scaled_.ratio(call.bytes));
  }
  // Blocks of a list become equal ones: their sum follows the law.
  [[nodiscard]] std::vector<std::int64_t> even(const ScaledCall& call, Values its, int size) const {
    double sum = 0;
    for (const std::int64_t value : its) sum += static_cast<double>(value);
    const auto each = std::llround(sum * scaled_.ratio(call.bytes) / size);
    return std::vector<std::int64_t>(static_cast<std::size_t>(size), each);
  }
  [[nodiscard]] std::vector<std::int64_t> slots(const SlotRule& rule, Values its, int turn) const {
    if (rule.form == SlotRule::Form::as_recorded) return {its.begin(), its.end()};
    const std::int64_t first = rule.first.at(scaled_.ranks());
    if (rule.form == SlotRule::Form::turn) return {first + turn};
    std::vector<std::int64_t> range(
        static_cast<std::size_t>(std::max<std::int64_t>(0, rule.length.at(scaled_.ranks()))));
    for (std::size_t i = 0; i < range.size(); ++i) range[i] = first + static_cast<std::int64_t>(i);
    return range;
  }

  const Scaled& scaled_;
  const ScalePlan& plan_;
  int rank_, class_, after_ = 0;
  const record::Recording* recording_ = nullptr;
  record::Writer writer_;
  std::vector<std::int64_t> words_;
  std::uint64_t passed_ = 0, calls_ = 0;
};

std::string peer_law(const ScaledCall& call) {
  if (call.destination) return call.destination->name();
  if (call.source) return call.source->name();
  return call.root ? call.root->name() : "";
}

void write_laws(const ScalePlan& plan, int ranks, std::uint64_t calls) {
  Json json;
  json.open('{');
  json.key("ranks").integer(ranks);
  json.key("calls").integer(static_cast<std::int64_t>(calls));
  json.key("classes").text(plan.classes().name);
  json.key("laws").open('[');
  for (const auto& [of_class, its] : plan.all()) {
    for (const ScaledCall& call : its.calls) {
      json.open('{');
      json.key("class").integer(of_class);
      json.key("call").text(call.function);
      json.key("place").text(call.place);
      json.key("compute").text(call.gap.name());
      json.key("compute_error").number(call.gap.error());
      json.key("seconds").number(call.seconds);
      json.key("bytes").text(call.bytes.name());
      json.key("peers").text(peer_law(call));
      json.close('}');
    }
  }
  json.close(']');
  json.key("loops").open('[');
  for (const auto& [of_class, its] : plan.all()) {
    for (const ScaledLoop& loop : its.loops)
      json.text(loop.turns ? loop.turns->name() : loop.as_recorded ? "as recorded" : loop.about.name());
  }
  json.close(']');
  json.close('}');
  json.end();
}

std::vector<std::unique_ptr<JobFile>> jobs_of(const std::vector<std::string>& words) {
  std::vector<std::vector<std::string>> files;
  for (const std::string& word : words) {
    if (word == "--")
      files.emplace_back();
    else if (!files.empty())
      files.back().push_back(word);
  }
  std::vector<std::unique_ptr<JobFile>> jobs;
  for (const std::vector<std::string>& each : files) jobs.push_back(std::make_unique<JobFile>(each));
  std::sort(jobs.begin(), jobs.end(), [](const auto& a, const auto& b) { return a->ranks() < b->ranks(); });
  for (std::size_t i = 1; i < jobs.size(); ++i) {
    if (jobs[i]->ranks() == jobs[i - 1]->ranks())
      stop("two recordings are of " + std::to_string(jobs[i]->ranks()) + " ranks: laws need different numbers");
  }
  if (jobs.size() < 2) stop("job scale: recordings on at least two numbers of ranks are needed");
  return jobs;
}

}  // namespace

void scale_job(const std::vector<std::string>& words) {
  const auto ranks = static_cast<int>(number_of("RANKS", words[0]));
  const std::string& file = words[1];
  const std::vector<std::unique_ptr<JobFile>> files = jobs_of(words);
  std::vector<const JobFile*> jobs;
  for (const auto& each : files) jobs.push_back(each.get());
  const ScalePlan plan(jobs, ranks);
  const Scaled scaled(plan, ranks);
  std::vector<std::string> parts;
  std::uint64_t calls = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    parts.push_back(file + "." + std::to_string(rank));
    calls += ScaledWriter(scaled, rank, parts.back()).write();
  }
  (void)JobFile(parts).pack(file);
  for (const std::string& part : parts) std::remove(part.c_str());
  write_laws(plan, ranks, calls);
}

}  // namespace stretto::modelling
