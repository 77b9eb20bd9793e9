// SPDX-License-Identifier: BSD-3-Clause
#include "job_timeline.hpp"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "job_clocks.hpp"
#include "job_lines.hpp"
#include "job_words.hpp"
#include "json.hpp"

namespace stretto::modelling {
namespace {

struct TimeSpan {
  double begin, end;
  int kind;
};

// Numbers of names, in the order in which they come.
template <class Name>
class Numbered {
 public:
  int of(const Name& name) {
    const auto [place, is_new] = numbers_.try_emplace(name, static_cast<int>(names_.size()));
    if (is_new) names_.push_back(name);
    return place->second;
  }
  [[nodiscard]] const std::vector<Name>& names() const { return names_; }

 private:
  std::map<Name, int> numbers_;
  std::vector<Name> names_;
};

// Makes the spans of a rank fewer: those behind gaps below a length become one, which has the kind
// of its longest part.
std::vector<TimeSpan> merged(const std::vector<TimeSpan>& spans, double gap) {
  std::vector<TimeSpan> few;
  double longest = 0;
  for (const TimeSpan& span : spans) {
    if (few.empty() || span.begin - few.back().end >= gap) {
      few.push_back(span);
      longest = span.end - span.begin;
      continue;
    }
    if (span.end - span.begin > longest) {
      longest = span.end - span.begin;
      few.back().kind = span.kind;
    }
    few.back().end = span.end;
  }
  return few;
}

class Timeline {
 public:
  Timeline(const JobFile& job, std::size_t most) : ranks_(static_cast<std::size_t>(job.ranks())) {
    const std::vector<double> begin = starts_of(job);
    for (std::size_t r = 0; r < ranks_.size(); ++r) add_rank(job.of(static_cast<int>(r)), begin[r], ranks_[r]);
    std::size_t all = 0;
    for (const auto& each : ranks_) all += each.size();
    for (double gap = end_ / 1e6; all > most && gap < end_; gap *= 2) {
      all = 0;
      for (auto& each : ranks_) {
        each = merged(each, gap);
        all += each.size();
      }
    }
  }

  void write(Json& json) const {
    json.key("seconds").number(end_);
    json.key("functions").open('[');
    for (const std::string& name : functions_.names()) json.text(name);
    json.close(']');
    json.key("places").open('[');
    for (const std::string& name : places_.names()) json.text(name);
    json.close(']');
    json.key("kinds").open('[');
    for (const auto& [function, place] : kinds_.names()) {
      json.open('[');
      json.integer(function);
      json.integer(place);
      json.close(']');
    }
    json.close(']');
    json.key("ranks").open('[');
    for (const auto& each : ranks_) {
      json.open('[');
      for (const TimeSpan& span : each) {
        json.integer(std::llround(span.begin * 1e9));
        json.integer(std::llround((span.end - span.begin) * 1e9));
        json.integer(span.kind);
      }
      json.close(']');
    }
    json.close(']');
  }

 private:
  void add_rank(const record::Recording& recording, double now, std::vector<TimeSpan>& spans) {
    std::vector<int> kinds;  // by term
    for (std::uint32_t term = 0; term < recording.terms(); ++term) {
      const int function = functions_.of(text_of(recording.function(term)));
      kinds.push_back(kinds_.of({function, places_.of(text_of(recording.place(term)))}));
    }
    record::Calls calls(recording);
    for (record::Calls::Call call; calls.next(&call); now += call.duration) {
      now += call.gap;
      spans.push_back({now, now + call.duration, kinds[call.term]});
    }
    end_ = std::max(end_, now);
  }

  Numbered<std::string> functions_, places_;
  Numbered<std::pair<int, int>> kinds_;
  std::vector<std::vector<TimeSpan>> ranks_;
  double end_ = 0;
};

// Those with most bytes, in the order in which they were sent.
std::vector<DrawnMessage> most_of(std::vector<DrawnMessage> messages, std::size_t most) {
  if (messages.size() <= most) return messages;
  const auto more = [](const DrawnMessage& a, const DrawnMessage& b) { return a.bytes > b.bytes; };
  std::nth_element(messages.begin(), messages.begin() + static_cast<std::ptrdiff_t>(most), messages.end(), more);
  messages.resize(most);
  std::sort(messages.begin(), messages.end(),
            [](const DrawnMessage& a, const DrawnMessage& b) { return a.sent < b.sent; });
  return messages;
}

void write_joined(Json& json, JoinedRanks joined, std::size_t most) {
  json.key("messages").open('{');
  json.key("number").integer(static_cast<std::int64_t>(joined.messages.size()));
  json.key("drawn").open('[');
  for (const DrawnMessage& each : most_of(std::move(joined.messages), most)) {
    json.integer(each.from);
    json.integer(each.to);
    json.integer(std::llround(each.sent * 1e9));
    json.integer(std::llround((each.received - each.sent) * 1e9));
    json.integer(static_cast<std::int64_t>(each.bytes));
  }
  json.close(']');
  json.close('}');
  json.key("critical").open('[');
  for (const PathPart& each : joined.path) {
    json.integer(each.rank);
    json.integer(std::llround(each.begin * 1e9));
    json.integer(std::llround((each.end - each.begin) * 1e9));
  }
  json.close(']');
}

}  // namespace

void write_timeline(const JobFile& job, std::size_t most_spans, std::size_t most_messages) {
  Json json;
  json.open('{');
  Timeline(job, most_spans).write(json);
  write_joined(json, join_ranks(job), most_messages);
  json.close('}');
  json.end();
}

}  // namespace stretto::modelling
