// SPDX-License-Identifier: BSD-3-Clause
#include "topo/levels.hpp"

#include "base/ascii.hpp"
#include "topo/locality.hpp"

namespace stretto::topo {
namespace {

bool is_name_byte(char c) { return is_small_letter(c) || is_digit(c); }

class Parser {
 public:
  Parser(const char* text, LevelChoice& choice, LevelError& error) : text_(text), choice_(choice), error_(error) {}

  bool run() {
    choice_ = {};
    bool named = false;
    bool whole = false;
    for (;;) {
      skip_blanks();
      const char* const word = at();
      LevelChoice::Entry entry;
      if (*word == '?') {
        ++at_;
        if (!number(&choice_.at_most)) return false;
      } else {
        entry.off = *word == '-';
        at_ += entry.off ? 1 : 0;
        if (!name(entry.name)) return false;
        const bool reserved = entry.name.is("auto") || entry.name.is("none");
        if (reserved && entry.off) return fail(word, "auto and none have no opposite");
        if (*at() == ':') {
          if (entry.off || reserved) return fail(at(), "only a level that is on can have parts");
          ++at_;
          if (!number(&entry.parts)) return false;
        }
        named = named || (!entry.off && !entry.name.is("auto"));
        whole = whole || entry.name.is("auto");
        if (!reserved) {
          if (choice_.count == kMostLevels) return fail(word, "too many levels");
          choice_.entries[choice_.count++] = entry;
        }
      }
      skip_blanks();
      if (*at() == 0) break;
      if (*at() != ',') return fail(at(), "',' was expected");
      ++at_;
    }
    choice_.all = whole || !named;
    return true;
  }

 private:
  [[nodiscard]] const char* at() const { return text_ + at_; }
  bool fail(const char* where, const char* what) {
    error_ = {static_cast<unsigned>(where - text_) + 1, what};
    return false;
  }
  void skip_blanks() {
    while (*at() == ' ') ++at_;
  }
  bool name(LevelName& name) {
    const char* const begin = at();
    std::size_t length = 0;
    for (; is_name_byte(*at()); ++at_) {
      if (length + 1 == kLevelNameBytes) return fail(begin, "no level has so long a name");
      name.text[length++] = *at();
    }
    return name.is("auto") || name.is("none") || locality_level(name.text, length) >= 0 ||
           fail(begin, "a level was expected: core, l2, l3, numa, socket, node, leaf, switch2, ...; or auto, none");
  }
  bool number(int* value) {
    const char* const begin = at();
    int result = 0;
    for (; is_digit(*at()); ++at_) {
      result = 10 * result + (*at() - '0');
      if (result > 1'000'000) return fail(begin, "the number is too large");
    }
    if (result == 0) return fail(begin, "a number from 1 was expected");
    *value = result;
    return true;
  }

  const char* text_;
  std::size_t at_ = 0;
  LevelChoice& choice_;
  LevelError& error_;
};

}  // namespace

bool LevelChoice::active(const LevelName& name, int* parts) const {
  bool on = all;
  *parts = 1;
  for (int i = 0; i < count; ++i) {
    if (!entries[i].name.is(name.text)) continue;
    on = !entries[i].off;
    *parts = entries[i].parts;
  }
  return on;
}

bool parse_levels(const char* text, LevelChoice* choice, LevelError* error) {
  return Parser(text, *choice, *error).run();
}

}  // namespace stretto::topo
