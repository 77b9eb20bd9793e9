// SPDX-License-Identifier: BSD-3-Clause
// Lists of the names that there are, for errors about unknown names.
#pragma once
#include <string>

#include "coll/algorithm.hpp"

namespace stretto {

inline void list(std::string& text, const std::string& name) { text += (text.empty() ? "" : ", ") + name; }

// Of the manifest: v-forms have the algorithms of their regular form.
inline std::string collectives_with_algorithms() {
  std::string text;
  Collective last = Collective::count_;
  for (const coll::Algorithm& algorithm : coll::manifest()) {
    if (algorithm.collective != last) list(text, kCollectiveNames[static_cast<int>(algorithm.collective)]);
    last = algorithm.collective;
  }
  return text;
}

inline std::string algorithms_of(Collective collective) {
  std::string text;
  for (const coll::Algorithm& algorithm : coll::manifest()) {
    if (algorithm.collective == coll::regular_form(collective)) list(text, algorithm.name);
  }
  return text;
}

}  // namespace stretto
