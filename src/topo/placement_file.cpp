// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement_file.hpp"

#include "topo/numbering.hpp"

#include <climits>

namespace stretto::topo {

class PlacementParser {
 public:
  PlacementParser(Array<PlacementFile::Rule>& rules, const char* text, std::size_t bytes, FileError& error)
      : rules_(rules), at_(text), end_(text + bytes), line_begin_(text), error_(error) {}

  bool run() {
    for (;;) {
      skip_blanks();
      if (!at_line_end() && !line()) return false;
      while (at_ != end_ && *at_ != '\n') ++at_;  // a comment
      if (at_ == end_) return !rules_.failed() || fail("no memory");
      line_begin_ = ++at_;
      ++line_;
    }
  }

 private:
  struct Range {
    int first, last;
  };
  static constexpr std::uint64_t kMostDomains = 1'000'000'000;

  bool fail(const char* what) {
    error_ = {line_, static_cast<unsigned>(at_ - line_begin_) + 1, what};
    return false;
  }
  [[nodiscard]] bool at_line_end() const { return at_ == end_ || *at_ == '\n' || *at_ == '#'; }
  void skip_blanks() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }
  bool take(char c) {
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  bool number(std::uint64_t* value, std::uint64_t most) {
    const char* const begin = at_;
    *value = 0;
    for (; at_ != end_ && *at_ >= '0' && *at_ <= '9'; ++at_) {
      *value = 10 * *value + static_cast<std::uint64_t>(*at_ - '0');
      if (*value > most) return at_ = begin, fail("the number is too large");
    }
    return at_ != begin || fail("a number was expected");
  }
  bool level(int* level) {
    const char* const begin = at_;
    while (at_ != end_ && ((*at_ >= 'a' && *at_ <= 'z') || (*at_ >= '0' && *at_ <= '9'))) ++at_;
    *level = seat_level(begin, static_cast<std::size_t>(at_ - begin));
    if (*level >= 0) return true;
    at_ = begin;
    return fail("a level was expected: core, l2, l3, numa, socket, node, leaf, switch2, ...");
  }

  bool line() {
    constexpr char kAll[] = "all";
    if (static_cast<std::size_t>(end_ - at_) >= 3 && std::memcmp(at_, kAll, 3) == 0) {
      at_ += 3;
      skip_blanks();
      return take(':') ? shape() : fail("':' was expected");
    }
    ranges_.clear();
    do {
      skip_blanks();
      std::uint64_t first, last;
      if (!number(&first, INT_MAX)) return false;
      last = first;
      if (take('-') && !number(&last, INT_MAX)) return false;
      if (last < first) return fail("the range ends before it begins");
      ranges_.push({static_cast<int>(first), static_cast<int>(last)});
      skip_blanks();
    } while (take(','));
    if (ranges_.failed()) return fail("no memory");
    return take(':') ? domains() : fail("':' was expected");
  }

  // level=number ...
  bool domains() {
    bool any = false;
    for (skip_blanks(); !at_line_end(); skip_blanks(), any = true) {
      PlacementFile::Rule rule{0, 0, 0, 0, 1, 0};
      if (!level(&rule.level)) return false;
      if (!take('=')) return fail("'=' was expected");
      if (!number(&rule.domain, kMostDomains)) return false;
      for (const Range& range : ranges_) {
        rule.first = range.first;
        rule.last = range.last;
        rules_.push(rule);
      }
    }
    return any || fail("the ranks are in no domain");
  }

  // level:number ..., from the outermost in
  bool shape() {
    const std::size_t first = rules_.size();
    std::uint64_t domains = 1;
    int above = kSeatLevelCount;
    for (skip_blanks(); !at_line_end(); skip_blanks()) {
      PlacementFile::Rule rule{0, INT_MAX, 0, 0, 1, 0};
      const char* const begin = at_;
      if (!level(&rule.level)) return false;
      if (rule.level >= above) return at_ = begin, fail("levels go from the outermost in");
      above = rule.level;
      if (!take(':')) return fail("':' was expected");
      std::uint64_t parts;
      if (!number(&parts, kMostDomains)) return false;
      if (parts == 0) return fail("a number from 1 was expected");
      domains *= parts;
      if (domains > kMostDomains) return fail("these are too many domains");
      rule.domains = domains;
      for (std::size_t i = first; i < rules_.size(); ++i) rules_[i].each *= parts;
      if (!rules_.push(rule)) return fail("no memory");
    }
    return rules_.size() != first || fail("the ranks are in no domain");
  }

  Array<PlacementFile::Rule>& rules_;
  Array<Range> ranges_;
  const char* at_;
  const char* const end_;
  const char* line_begin_;
  unsigned line_ = 1;
  FileError& error_;
};

bool PlacementFile::parse(const char* text, std::size_t bytes, FileError* error) {
  rules_.clear();
  return PlacementParser(rules_, text, bytes, *error).run();
}

Seat PlacementFile::seat(int rank) const {
  Seat seat;
  for (const Rule& rule : rules_) {
    if (rank < rule.first || rank > rule.last) continue;
    const std::uint64_t dealt = rule.domains != 0 ? static_cast<std::uint64_t>(rank) / rule.each % rule.domains : rule.domain;
    seat.domains[rule.level] = dealt + 1;
  }
  return seat;
}

bool PlacementFile::place(int ranks, Placement* placement) const {
  placement->start(ranks);
  Numbering numbers;
  for (int level = 0; level < kSeatLevelCount; ++level) {
    bool named = false;
    for (const Rule& rule : rules_) named = named || rule.level == level;
    if (!named) continue;
    if (!placement->add_level(kSeatLevels[level])) return false;
    numbers.clear();
    for (int r = 0; r < ranks; ++r) {
      const std::uint64_t domain = seat(r).domains[level];
      if (domain != 0) placement->at(placement->levels - 1, r) = numbers.number(static_cast<std::int32_t>(domain >> 32), static_cast<std::int32_t>(domain));
    }
  }
  return !numbers.failed();
}

}  // namespace stretto::topo
