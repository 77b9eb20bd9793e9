// SPDX-License-Identifier: BSD-3-Clause
#include "topo/network.hpp"

#include <cstdio>

#include "base/ascii.hpp"
#include "topo/hostlist.hpp"

namespace stretto::topo {
namespace {

struct Text {
  const char* at = nullptr;
  std::size_t bytes = 0;
};

bool is_word(const Text& text, const char* word) {
  std::size_t i = 0;
  for (; i < text.bytes && word[i] != 0; ++i) {
    if (lower(text.at[i]) != word[i]) return false;
  }
  return i == text.bytes && word[i] == 0;
}
bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

}  // namespace

class NetworkParser {
 public:
  NetworkParser(Network& network, const char* text, std::size_t bytes, FileError& error)
      : network_(network), at_(text), end_(text + bytes), error_(error) {}

  bool run() {
    while (at_ != end_) {
      line_begin_ = at_;
      const char* eol = at_;
      while (eol != end_ && *eol != '\n') ++eol;
      const char* last = at_;
      while (last != eol && *last != '#') ++last;  // the rest of the line is a comment
      line_end_ = last;
      if (!line()) return false;
      at_ = eol == end_ ? end_ : eol + 1;
      ++line_;
    }
    return finish();
  }

 private:
  struct Field {
    Text key, value;
  };

  bool fail(const char* where, const char* what) {
    error_ = {line_, static_cast<unsigned>(where - line_begin_) + 1, what};
    return false;
  }
  bool fail_memory() { return fail(line_begin_, "no memory"); }

  bool word(Text* word) {
    while (at_ != line_end_ && is_blank(*at_)) ++at_;
    word->at = at_;
    while (at_ != line_end_ && !is_blank(*at_)) {
      if (static_cast<unsigned char>(*at_) < 0x20 || *at_ == 0x7f) return fail(at_, "a control character");
      ++at_;
    }
    word->bytes = static_cast<std::size_t>(at_ - word->at);
    return true;
  }

  bool line() {
    Text first;
    if (!word(&first)) return false;
    if (first.bytes == 0) return true;
    bool has_equals = false;
    for (std::size_t i = 0; i < first.bytes; ++i) has_equals = has_equals || first.at[i] == '=';
    return has_equals ? slurm_line(first) : node_line(first);
  }

  // ---- node switch [switch ...] ----
  bool node_line(const Text& name) {
    Text above;
    if (!word(&above)) return false;
    if (above.bytes == 0) return fail(name.at, "the node has no switch");
    const int leaf = switch_number(above);
    if (!hosts(name, leaf, -1)) return false;
    int below = leaf;
    for (;;) {
      const Text before = above;
      if (!word(&above)) return false;
      if (above.bytes == 0) return true;
      const int number = switch_number(above);
      if (number < 0) return fail_memory();
      int& parent = network_.parent_[static_cast<std::size_t>(below)];
      if (parent >= 0 && parent != number) return fail(before.at, "this switch hangs on another one in a line above");
      if (below == number) return fail(above.at, "a switch above itself");
      parent = number;
      below = number;
    }
  }

  // ---- Slurm ----
  bool field(const Text& word, Field* field) {
    std::size_t i = 0;
    while (i < word.bytes && word.at[i] != '=') ++i;
    if (i == word.bytes) return fail(word.at, "KEY=VALUE was expected");
    field->key = {word.at, i};
    field->value = {word.at + i + 1, word.bytes - i - 1};
    return field->value.bytes != 0 || fail(word.at, "the value is missing");
  }

  bool slurm_line(Text next) {
    Field named{}, nodes{}, switches{}, sizes{}, level{};
    const Text first = next;
    for (; next.bytes != 0;) {
      Field f;
      if (!field(next, &f)) return false;
      Field* const place = is_word(f.key, "switchname") || is_word(f.key, "blockname") ? &named
                           : is_word(f.key, "nodes")                                   ? &nodes
                           : is_word(f.key, "switches")                                ? &switches
                           : is_word(f.key, "blocksizes")                              ? &sizes
                           : is_word(f.key, "level")                                   ? &level
                                                                                       : nullptr;
      if (place && place->key.at) return fail(f.key.at, "given twice");
      if (place) {
        *place = f;
      } else if (!is_word(f.key, "linkspeed")) {
        return fail(f.key.at, "unknown: SwitchName, Nodes, Switches, LinkSpeed, BlockName or BlockSizes was expected");
      }
      if (!word(&next)) return false;
    }
    if (sizes.key.at)
      return named.key.at || nodes.key.at ? fail(sizes.key.at, "BlockSizes has a line of its own")
                                          : block_sizes(sizes.value);
    if (!named.key.at) return fail(first.at, "SwitchName or BlockName was expected");
    // scontrol writes a level, and beside the switches below a switch all nodes below these.
    if (level.key.at && switches.key.at) nodes = {};
    const bool block = is_word(named.key, "blockname");
    if (block && switches.key.at) return fail(switches.key.at, "a block has nodes, no switches");
    if (!nodes.key.at && !switches.key.at)
      return fail(first.at, block ? "Nodes is missing" : "Nodes or Switches is missing");
    return declare(named.value, block) && (!nodes.key.at || hosts(nodes.value, declared_, -1)) &&
           (!switches.key.at || hosts(switches.value, -1, declared_));
  }

  bool declare(const Text& name, bool block) {
    declared_ = switch_number(name);
    if (declared_ < 0) return fail_memory();
    const auto i = static_cast<std::size_t>(declared_);
    if (seen_[i]) return fail(name.at, "declared in a line above");
    seen_[i] = 1;
    return !block || blocks_.push(declared_) || fail_memory();
  }

  bool block_sizes(const Text& value) {
    if (!sizes_.empty()) return fail(value.at, "given twice");
    for (std::size_t i = 0; i < value.bytes; ++i) {
      const char* const begin = value.at + i;
      std::uint64_t size = 0;
      for (; i < value.bytes && is_digit(value.at[i]); ++i) {
        size = 10 * size + static_cast<std::uint64_t>(value.at[i] - '0');
        if (size > 1'000'000) return fail(begin, "the size is too large");
      }
      if (size == 0) return fail(begin, "a size from 1 was expected");
      if (i < value.bytes && value.at[i] != ',') return fail(value.at + i, "',' was expected");
      if (i + 1 == value.bytes) return fail(value.at + i, "a size was expected after ','");
      if (!sizes_.empty() && (size <= sizes_.back() || size % sizes_.back() != 0)) {
        return fail(begin, "every size is a multiple of the one before it");
      }
      if (sizes_.size() == kMostSizes) return fail(begin, "too many sizes");
      if (!sizes_.push(size)) return fail_memory();
    }
    return true;
  }

  // Puts all nodes of a host list below the switch `leaf`, or all switches of the list below the
  // switch `above`.
  bool hosts(const Text& list, int leaf, int above) {
    struct Context {
      NetworkParser* parser;
      int leaf, above;
    } context{this, leaf, above};
    HostlistError error;
    const auto hang = [](void* c, const char* name, std::size_t length) {
      const Context& to = *static_cast<Context*>(c);
      return to.above >= 0 ? to.parser->hang_switch({name, length}, to.above)
                           : to.parser->hang_node({name, length}, to.leaf);
    };
    const bool good = expand_hostlist(list.at, list.bytes, hang, &context, &error);
    return good || fail(list.at + error.at, error.what);
  }

  const char* hang_node(const Text& name, int leaf) {
    const int number = network_.nodes_.number(name.at, name.bytes);
    if (number < 0 || leaf < 0) return "no memory";
    if (static_cast<std::size_t>(number) < network_.leaf_.size()) return "the node has a switch already";
    return network_.leaf_.push(leaf) ? nullptr : "no memory";
  }
  const char* hang_switch(const Text& name, int above) {
    const int number = switch_number(name);
    if (number < 0) return "no memory";
    if (number == above) return "a switch above itself";
    int& parent = network_.parent_[static_cast<std::size_t>(number)];
    if (parent < 0) parent = above;  // of several, the first counts
    return nullptr;
  }

  int switch_number(const Text& name) {
    const int number = network_.switches_.number(name.at, name.bytes);
    if (number < 0) return -1;
    const auto size = static_cast<std::size_t>(network_.switches_.count());
    return network_.parent_.resize(size, -1) && seen_.resize(size, 0) ? number : -1;
  }

  // Puts blocks below the larger ones that follow from BlockSizes. These gather neighbours in the
  // order of the file.
  bool gather_blocks() {
    Array<int> below;
    for (const int block : blocks_) below.push(block);
    for (std::size_t s = 1; s < sizes_.size(); ++s) {
      const auto each = static_cast<std::size_t>(sizes_[s] / sizes_[s - 1]);
      Array<int> above;
      for (std::size_t i = 0; i < below.size(); ++i) {
        if (i % each == 0) {
          char name[64];
          const int length = std::snprintf(name, sizeof name, "%llu nodes from %.40s",
                                           static_cast<unsigned long long>(sizes_[s]), network_.switch_name(below[i]));
          const int number = switch_number({name, static_cast<std::size_t>(length < 63 ? length : 63)});
          if (number < 0 || !above.push(number)) return fail_memory();
        }
        if (below[i] == above.back()) return fail(line_begin_, "a block's name is that of a larger one");
        network_.parent_[static_cast<std::size_t>(below[i])] = above.back();
      }
      below.swap(above);
    }
    return true;
  }

  bool finish() {
    line_begin_ = at_;
    if (!gather_blocks()) return false;
    if (network_.nodes_.failed() || network_.switches_.failed() || blocks_.failed()) return fail_memory();
    return network_.finish() || fail(line_begin_, "more than 12 switches above each other, or one above itself");
  }

  static constexpr std::size_t kMostSizes = 8;
  Network& network_;
  const char* at_;
  const char* end_;
  const char* line_begin_ = nullptr;
  const char* line_end_ = nullptr;
  FileError& error_;
  unsigned line_ = 1;
  int declared_ = -1;
  Array<char> seen_;  // by switch: whether it has been declared
  Array<int> blocks_;
  Array<std::uint64_t> sizes_;
};

void Network::clear() {
  nodes_.clear();
  switches_.clear();
  leaf_.clear();
  parent_.clear();
  levels_ = 0;
}

bool Network::finish() {
  for (const int leaf : leaf_) {
    int height = 0;
    for (int s = leaf; s >= 0 && height <= kMostSwitchLevels; s = parent_[static_cast<std::size_t>(s)]) ++height;
    levels_ = height > levels_ ? height : levels_;
  }
  return levels_ <= kMostSwitchLevels;
}

int Network::switch_over(int node, int level) const {
  int at = leaf_[static_cast<std::size_t>(node)];
  for (int l = 0; l < level && at >= 0 && parent_[static_cast<std::size_t>(at)] >= 0; ++l)
    at = parent_[static_cast<std::size_t>(at)];
  return at;
}

bool Network::parse(const char* text, std::size_t bytes, FileError* error) {
  clear();
  return NetworkParser(*this, text, bytes, *error).run();
}

}  // namespace stretto::topo
