// SPDX-License-Identifier: BSD-3-Clause
#include "topo/placement_file.hpp"

#include <climits>

#include "base/line_scanner.hpp"
#include "topo/numbering.hpp"

namespace stretto::topo {

class PlacementParser : LineScanner {
 public:
  PlacementParser(Array<PlacementFile::Rule>& rules, const char* text, std::size_t bytes, FileError& error)
      : LineScanner(text, bytes, error), rules_(rules) {}

  bool run() {
    return each_line([&] { return line(); }) && (!rules_.failed() || fail("no memory"));
  }

 private:
  struct Range {
    int first, last;
  };
  static constexpr std::uint64_t kMostDomains = 1'000'000'000;

  std::size_t name_length() {
    return run_of([](char c) { return is_small_letter(c) || is_digit(c); });
  }
  bool level(int* level) {
    const char* const begin = at_;
    *level = locality_level(begin, name_length());
    return *level >= 0 || fail(begin, "a level was expected: core, l2, l3, numa, socket, node, leaf, switch2, ...");
  }
  bool level_or_nic(int* level) {
    const char* const begin = at_;
    const std::size_t length = name_length();
    const bool nic = length == 3 && std::memcmp(begin, "nic", 3) == 0;
    *level = nic ? PlacementFile::kNics : locality_level(begin, length);
    return *level >= 0 ||
           fail(begin, "a level was expected: core, l2, l3, numa, socket, node, leaf, switch2, ...; or nic");
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

  // Reads: level=number nic=number ...
  bool domains() {
    bool any = false;
    std::uint64_t nics = 0;
    for (skip_blanks(); !at_line_end(); skip_blanks(), any = true) {
      PlacementFile::Rule rule{0, 0, 0, 0, 1, 0};
      if (!level_or_nic(&rule.level)) return false;
      if (!take('=')) return fail("'=' was expected");
      const bool nic = rule.level == PlacementFile::kNics;
      if (!number(&rule.domain, nic ? sys::kMostNics - 1 : kMostDomains)) return false;
      if (nic) rule.domain = nics |= std::uint64_t{1} << rule.domain;
      for (const Range& range : ranges_) {
        rule.first = range.first;
        rule.last = range.last;
        rules_.push(rule);
      }
    }
    return any || fail("the ranks are in no domain");
  }

  // Reads: level:number ..., from the outermost level to the innermost
  bool shape() {
    const std::size_t first = rules_.size();
    std::uint64_t domains = 1;
    int above = kLocalityLevelCount;
    for (skip_blanks(); !at_line_end(); skip_blanks()) {
      PlacementFile::Rule rule{0, INT_MAX, 0, 0, 1, 0};
      const char* const begin = at_;
      if (!level(&rule.level)) return false;
      if (rule.level >= above) return fail(begin, "levels go from the outermost in");
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
};

bool PlacementFile::parse(const char* text, std::size_t bytes, FileError* error) {
  rules_.clear();
  return PlacementParser(rules_, text, bytes, *error).run();
}

Locality PlacementFile::locality(int rank) const {
  Locality locality;
  for (const Rule& rule : rules_) {
    if (rank < rule.first || rank > rule.last) continue;
    const std::uint64_t dealt =
        rule.domains != 0 ? static_cast<std::uint64_t>(rank) / rule.each % rule.domains : rule.domain;
    if (rule.level == kNics) {
      locality.nics = {static_cast<std::uint32_t>(dealt), 0};
    } else {
      locality.domains[rule.level] = dealt + 1;
    }
  }
  return locality;
}

bool PlacementFile::place(int ranks, Placement* placement) const {
  placement->start(ranks);
  Numbering numbers;
  for (int level = 0; level < kLocalityLevelCount; ++level) {
    bool named = false;
    for (const Rule& rule : rules_) named = named || rule.level == level;
    if (!named) continue;
    if (!placement->add_level(kLocalityLevels[level])) return false;
    numbers.clear();
    for (int r = 0; r < ranks; ++r) {
      const std::uint64_t domain = locality(r).domains[level];
      if (domain != 0)
        placement->at(placement->levels - 1, r) =
            numbers.number(static_cast<std::int32_t>(domain >> 32), static_cast<std::int32_t>(domain));
    }
  }
  bool nics = false;
  for (const Rule& rule : rules_) nics = nics || rule.level == kNics;
  for (int r = 0; r < ranks && nics; ++r) placement->nics.push(locality(r).nics);
  return !numbers.failed() && !placement->nics.failed();
}

}  // namespace stretto::topo
