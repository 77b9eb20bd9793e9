// SPDX-License-Identifier: BSD-3-Clause
#include "select/rules.hpp"

#include "base/ascii.hpp"
#include "base/line_scanner.hpp"
#include "base/units.hpp"

namespace stretto::select {
namespace {

constexpr std::uint64_t kMostRanks = 1'000'000'000;
constexpr std::uint64_t kMostK = 1'000'000;

bool is_name_byte(char c) { return is_small_letter(c) || is_digit(c) || c == '_'; }
bool is_size_byte(char c) { return is_digit(c) || is_letter(c); }

// A name in the file, terminated. A name that is too long to be known is empty.
struct Name {
  char text[48] = "";
  Name(const char* begin, std::size_t length) {
    if (length < sizeof text) std::memcpy(text, begin, length);
  }
  [[nodiscard]] bool is(const char* other) const { return std::strcmp(text, other) == 0; }
  [[nodiscard]] bool begins_with(const char* other) const { return std::strncmp(text, other, std::strlen(other)) == 0; }
};

class RulesParser : LineScanner {
 public:
  RulesParser(Array<Rule>& rules, const char* text, std::size_t bytes, FileError& error)
      : LineScanner(text, bytes, error), rules_(rules) {}

  bool run() {
    return each_line([&] { return line(); }) && (!rules_.failed() || fail("no memory"));
  }

 private:
  bool line() {
    Rule rule;
    const char* const begin = at_;
    const Name name(begin, run_of(is_name_byte));
    rule.selection.collective = collective_named(name.text);
    rule.selection.line = line_;
    if (rule.selection.collective == Collective::count_)
      return fail(begin, "a collective was expected: bcast, allreduce, ...");
    if (!calls(rule) || !backend(rule)) return false;
    rules_.push(rule);
    return true;
  }

  // [ranks=RANGE] [nodes=RANGE] [bytes=RANGE] :
  bool calls(Rule& rule) {
    for (skip_blanks(); !take(':'); skip_blanks()) {
      const char* const begin = at_;
      const Name key(begin, run_of(is_name_byte));
      Range* const range = key.is("ranks")   ? &rule.ranks
                           : key.is("nodes") ? &rule.nodes
                           : key.is("bytes") ? &rule.bytes
                                             : nullptr;
      if (!range || !take('=')) return fail(begin, "ranks=, nodes=, bytes= or ':' was expected");
      if (!bound(&range->least, range == &rule.bytes)) return false;
      range->most = range->least;
      if (take('-') && !upper_bound(range, range == &rule.bytes)) return false;
    }
    return true;
  }
  bool upper_bound(Range* range, bool is_size) {
    const char* const begin = at_;
    range->most = Range{}.most;
    if (at_ == end_ || !is_digit(*at_)) return true;
    return bound(&range->most, is_size) &&
           (range->least <= range->most || fail(begin, "the range ends before it begins"));
  }
  bool bound(std::uint64_t* value, bool is_size) { return is_size ? size(value) : number(value, kMostRanks); }
  bool size(std::uint64_t* value) {
    const char* const begin = at_;
    const std::size_t length = run_of(is_size_byte);
    return parse_size(begin, length, value) || fail(begin, "a number of bytes was expected, as 4096 or 4K");
  }

  // mpi | builtin | shm:NAME | NAME [k=N] [by=NAME] [segment=BYTES]
  bool backend(Rule& rule) {
    skip_blanks();
    const char* const begin = at_;
    const Name name(begin, run_of([](char c) { return is_name_byte(c) || c == ':'; }));
    rule.backend = backend_of(name);
    if (rule.backend == Rule::Backend::shared_memory && !memory(rule.selection, name))
      return fail(begin, coll_shm::expected(rule.selection.collective));
    if (rule.backend == Rule::Backend::schedule && !schedule(rule.selection, name))
      return fail(begin, "mpi, builtin, shm:NAME, hierarchy or an algorithm of this collective was expected");
    for (skip_blanks(); !at_line_end(); skip_blanks()) {
      if (rule.backend != Rule::Backend::schedule) return fail("text after the end of the rule");
      if (!parameter(rule.selection)) return false;
    }
    return true;
  }
  static Rule::Backend backend_of(const Name& name) {
    if (name.is("mpi")) return Rule::Backend::host;
    if (name.is("builtin")) return Rule::Backend::builtin;
    return name.begins_with(coll_shm::kPrefix) ? Rule::Backend::shared_memory : Rule::Backend::schedule;
  }
  static bool memory(Selection& selection, const Name& name) {
    selection.memory = coll_shm::find_algorithm(selection.collective, name.text + std::strlen(coll_shm::kPrefix));
    return selection.memory != nullptr;
  }
  bool schedule(Selection& selection, const Name& name) {
    if (const coll::Algorithm* const flat = coll::find_algorithm(selection.collective, name.text)) {
      selection.over = Selection::Over::ranks;
      selection.across = flat->name;
      return true;
    }
    const CompositionName* const composition = find_composition(selection.collective, name.text);
    if (!composition) return false;
    selection.over = composition->over;
    selection.form = composition->form;
    return true;
  }
  bool parameter(Selection& selection) {
    const char* const begin = at_;
    const Name key(begin, run_of(is_name_byte));
    if (!(key.is("k") || key.is("by") || key.is("segment")) || !take('='))
      return fail(begin, "k=, by= or segment= was expected");
    if (key.is("by"))
      return selection.is_flat() ? fail(begin, "only what goes over the levels is by another algorithm")
                                 : by(selection);
    const coll::Algorithm* const flat = flat_of(selection);
    if (key.is("segment")) {
      if (flat && !flat->segmentable()) return fail(begin, "this algorithm knows no segments");
      return size(&selection.segment.bytes);
    }
    if (!flat || flat->k == 0) return fail(begin, "this algorithm has no k");
    std::uint64_t k = 0;
    if (!number(&k, kMostK)) return false;
    selection.k = static_cast<int>(k);
    return k != 0 || fail(begin, "k is a number from 1");
  }

  // by=NAME: what serves bcasts, reduces, or the collective itself on each level.
  bool by(Selection& selection) {
    const char* const begin = at_;
    const Name name(begin, run_of(is_name_byte));
    const auto known = [&](Collective collective) {
      const coll::Algorithm* const algorithm = coll::find_algorithm(collective, name.text);
      return algorithm ? algorithm->name : nullptr;
    };
    selection.down = known(Collective::bcast);
    selection.up = known(Collective::reduce);
    selection.across = known(selection.collective);
    return selection.down || selection.up || selection.across ||
           fail(begin, "an algorithm of this collective, of bcast or reduce was expected");
  }

  Array<Rule>& rules_;
};

}  // namespace

bool Rules::parse(const char* text, std::size_t bytes, FileError* error) {
  rules_.clear();
  if (RulesParser(rules_, text, bytes, *error).run()) return true;
  rules_.clear();
  return false;
}

bool Rules::speak_of_nodes(int nodes) const {
  for (const Rule& rule : rules_) {
    if (rule.nodes.has(static_cast<std::uint64_t>(nodes))) return true;
  }
  return false;
}

}  // namespace stretto::select
