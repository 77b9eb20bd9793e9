// SPDX-License-Identifier: BSD-3-Clause
// All schemes, by name, for benchmarks and tests. A new scheme is a file and a line here.
#pragma once
#include <cstring>

#include "kv/lock/n_mcs.hpp"
#include "kv/lock/n_mutex_signal.hpp"
#include "kv/lock/one_n_mutex.hpp"
#include "kv/lock/passive.hpp"
#include "kv/lock/rwlock.hpp"
#include "kv/lock/seqlock.hpp"
#include "kv/lock/two_n_mutex.hpp"

namespace stretto::kv {

template <template <class> class Scheme>
struct SchemeTag {
  template <class Sync>
  using Of = Scheme<Sync>;
  static constexpr const char* name = Scheme<Machine>::kName;
};

// Calls visit(SchemeTag<...>{}) for each scheme until one call returns true.
template <class Visit>
bool any_scheme(Visit visit) {
  return visit(SchemeTag<RwLock>{}) || visit(SchemeTag<OneNMutex>{}) || visit(SchemeTag<TwoNMutex>{}) ||
         visit(SchemeTag<NMutexSignal>{}) || visit(SchemeTag<NMcs>{}) || visit(SchemeTag<SeqLock>{}) ||
         visit(SchemeTag<Passive>{});
}

// Calls `visit` for the scheme of this name. False if there is none.
template <class Visit>
bool with_scheme(const char* name, Visit visit) {
  return any_scheme([&](auto tag) {
    if (std::strcmp(tag.name, name) != 0) return false;
    visit(tag);
    return true;
  });
}

}  // namespace stretto::kv
