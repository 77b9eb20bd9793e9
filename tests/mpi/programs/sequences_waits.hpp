// SPDX-License-Identifier: BSD-3-Clause
// All ways to end requests. Each rank chooses its own.
#pragma once
#include <thread>

#include "sequences_state.hpp"

namespace sequences {

// A list of requests as MPI takes it. Null requests may lie between.
class Requests {
 public:
  Requests(State& state, std::vector<Posted*> posted) : state_(state), posted_(std::move(posted)) {
    requests_.resize(posted_.size());
    statuses_.resize(requests_.size() + 1);
    indices_.resize(requests_.size() + 1);
  }

  // Null requests between the others, which makes MPI_Waitall write empty statuses.
  static std::vector<Posted*> mixed(std::vector<Posted*> posted, Random& random) {
    if (random.chance(30)) posted.push_back(nullptr);
    if (random.chance(30)) posted.push_back(nullptr);
    random.shuffle(posted);
    return posted;
  }

  [[nodiscard]] bool active() const {
    return std::any_of(posted_.begin(), posted_.end(), [](const Posted* p) { return p && p->active; });
  }

  [[nodiscard]] bool may_fail() const {
    return std::any_of(posted_.begin(), posted_.end(), [](const Posted* p) { return p && p->transfer->may_fail; });
  }

  [[nodiscard]] bool has_persistent() const {
    return std::any_of(posted_.begin(), posted_.end(), [](const Posted* p) { return p && p->active && p->persistent; });
  }

  // One call of form `how`: those from 5 on may end nothing.
  void step(int how, Random& random) {
    if (has_persistent() && !state_.with("looks_at_persistent")) how = how == 4 ? 3 : how == 5 ? 7 : how;
    const std::vector<bool> listed = list();
    const int n = static_cast<int>(requests_.size());
    int flag = 0, index = MPI_UNDEFINED, done = 0, error = MPI_SUCCESS;
    MPI_Status* ignored = ignorable() && random.chance(50) ? MPI_STATUSES_IGNORE : nullptr;
    MPI_Status* many = ignored ? ignored : statuses_.data();
    MPI_Status* one = ignored ? MPI_STATUS_IGNORE : statuses_.data();
    switch (how) {
      case 0: one_by_one(random); break;
      case 1: all(MPI_Waitall(n, requests_.data(), many), many); break;
      case 2:
        error = MPI_Waitany(n, requests_.data(), &index, one);
        if (index != MPI_UNDEFINED) ended(index, error, one);
        break;
      case 3:
        error = MPI_Waitsome(n, requests_.data(), &done, indices_.data(), many);
        some(error, done, many);
        break;
      case 4: after_a_look(random); break;
      case 5:
        error = MPI_Testall(n, requests_.data(), &flag, many);
        if (flag != 0) all(error, many);
        break;
      case 6:
        error = MPI_Testany(n, requests_.data(), &index, &flag, one);
        if (flag != 0 && index != MPI_UNDEFINED) ended(index, error, one);
        break;
      case 7:
        error = MPI_Testsome(n, requests_.data(), &done, indices_.data(), many);
        some(error, done, many);
        break;
      default: {
        const int i = static_cast<int>(random.below(n));
        if (!is_active(i)) break;
        MPI_Status status;
        error = MPI_Test(&requests_[at(i)], &flag, &status);
        if (flag != 0 || error != MPI_SUCCESS) ended(i, error, &status);
      }
    }
    for (std::size_t i = 0; i < posted_.size(); ++i) {
      if (listed[i]) posted_[i]->request = requests_[i];
    }
    if (how >= 5) std::this_thread::yield();
  }

 private:
  // The requests of a call. Persistent ones that have ended are among them.
  std::vector<bool> list() {
    std::vector<bool> listed;
    for (std::size_t i = 0; i < posted_.size(); ++i) {
      listed.push_back(posted_[i] && (posted_[i]->active || state_.with("inactive_in_lists")));
      requests_[i] = listed[i] ? posted_[i]->request : MPI_REQUEST_NULL;
    }
    return listed;
  }
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  [[nodiscard]] bool is_active(int i) const { return posted_[at(i)] && posted_[at(i)]->active; }
  [[nodiscard]] bool ignorable() const {
    return std::none_of(posted_.begin(), posted_.end(), [](const Posted* p) {
      return p && p->active && (p->transfer->has_status || p->transfer->may_fail);
    });
  }

  void ended(int i, int error, const MPI_Status* status) {
    if (!is_active(i)) {
      state_.log(state_.index, 99, "an inactive request has ended");
      return;
    }
    Posted& p = *posted_[at(i)];
    const bool known = status != MPI_STATUS_IGNORE && status != MPI_STATUSES_IGNORE;
    log_end(state_, *p.transfer, p.round, error, known ? status : nullptr);
    p.active = false;
    if (p.persistent == (requests_[at(i)] == MPI_REQUEST_NULL))
      state_.log(p.transfer->index, p.round, "its request is not what it must be after the end");
  }

  void all(int code, MPI_Status* statuses) {
    const bool in_status = code != MPI_SUCCESS && error_class(code) == std::to_string(MPI_ERR_IN_STATUS);
    for (std::size_t i = 0; i < posted_.size(); ++i) {
      const int error = in_status && statuses != MPI_STATUSES_IGNORE ? statuses[i].MPI_ERROR : code;
      if (is_active(static_cast<int>(i))) {
        if (error != MPI_SUCCESS && error_class(error) == std::to_string(MPI_ERR_PENDING)) continue;
        ended(static_cast<int>(i), error, statuses == MPI_STATUSES_IGNORE ? MPI_STATUS_IGNORE : &statuses[i]);
      } else if (statuses != MPI_STATUSES_IGNORE && code == MPI_SUCCESS) {
        if (statuses[i].MPI_SOURCE != MPI_ANY_SOURCE || statuses[i].MPI_TAG != MPI_ANY_TAG)
          state_.log(state_.index, 98, "the status of an inactive request is not empty");
      }
    }
  }

  void some(int code, int done, MPI_Status* statuses) {
    if (done == MPI_UNDEFINED) return;
    const bool in_status = code != MPI_SUCCESS;
    for (int j = 0; j < done; ++j) {
      const bool known = statuses != MPI_STATUSES_IGNORE;
      ended(indices_[at(j)], in_status && known ? statuses[at(j)].MPI_ERROR : code, known ? &statuses[at(j)] : nullptr);
    }
  }

  void one_by_one(Random& random) {
    std::vector<std::size_t> order;
    for (std::size_t i = 0; i < requests_.size(); ++i) order.push_back(i);
    random.shuffle(order);
    for (const std::size_t i : order) {
      MPI_Status status;
      const bool was = is_active(static_cast<int>(i));
      const int error = MPI_Wait(&requests_[i], &status);
      if (was) ended(static_cast<int>(i), error, &status);
    }
  }

  // MPI_Request_get_status and its like until they say so, and then the call that ends requests.
  void after_a_look(Random& random) {
    const int n = static_cast<int>(requests_.size());
    int flag = 0;
    MPI_Status status;
#if MPI_VERSION > 4 || (MPI_VERSION == 4 && MPI_SUBVERSION >= 1)
    const auto form = state_.with("status_of_several") ? random.below(4) : 3;
    if (form == 0) {
      while (flag == 0) MPI_Request_get_status_all(n, requests_.data(), &flag, statuses_.data());
      all(MPI_Waitall(n, requests_.data(), statuses_.data()), statuses_.data());
      return;
    }
    if (form == 1) {
      int index = MPI_UNDEFINED;
      while (flag == 0) MPI_Request_get_status_any(n, requests_.data(), &index, &flag, &status);
      if (index == MPI_UNDEFINED || !is_active(index)) return;
      const int error = MPI_Wait(&requests_[at(index)], &status);
      ended(index, error, &status);
      return;
    }
    if (form == 2) {
      int done = 0;
      while (done == 0) MPI_Request_get_status_some(n, requests_.data(), &done, indices_.data(), statuses_.data());
      for (int j = 0; done != MPI_UNDEFINED && j < done; ++j) {
        const int error = MPI_Wait(&requests_[at(indices_[at(j)])], &status);
        ended(indices_[at(j)], error, &status);
      }
      return;
    }
#endif
    int i = static_cast<int>(random.below(n));
    for (int tries = 0; tries < n && !is_active(i); ++tries) i = (i + 1) % n;
    if (!is_active(i)) return;
    while (flag == 0) MPI_Request_get_status(requests_[at(i)], &flag, &status);
    const int error = MPI_Wait(&requests_[at(i)], &status);
    ended(i, error, &status);
  }

  State& state_;
  std::vector<Posted*> posted_;
  std::vector<MPI_Request> requests_;
  std::vector<MPI_Status> statuses_;
  std::vector<int> indices_;
};

inline std::vector<Posted*> active_of(std::vector<Posted>& posted) {
  std::vector<Posted*> found;
  for (Posted& p : posted) {
    if (p.active) found.push_back(&p);
  }
  return found;
}

// Ends all of them, in one of the forms or in several. How often it draws depends on what ends
// when, so it has a copy of the random stream.
inline void end_all(State& state, const std::vector<Posted*>& posted, Random random) {
  if (posted.empty()) return;
  Requests list(state, Requests::mixed(posted, random));
  auto one_form = random.chance(60) ? random.below(9) : -1;
  if (list.may_fail() && !state.with("errors_in_lists")) one_form = 0;
  while (list.active()) list.step(static_cast<int>(one_form < 0 ? random.below(9) : one_form), random);
}

inline void give_back(std::vector<Posted>& slot) {
  for (Posted& p : slot) {
    if (p.persistent && p.request != MPI_REQUEST_NULL) MPI_Request_free(&p.request);
  }
  slot.clear();
}

inline void start(State& s, Posted& p) {
  const Transfer& t = *p.transfer;
  ++p.round;
  p.transfer->fill(s.seed, s.world_rank, p.round);
  const int code = MPI_Start(&p.request);
  p.active = code == MPI_SUCCESS;
  if (!p.active) s.log(t.index, p.round, t.text + " | start class " + error_class(code));
}

// The slot for a new request. What was in it ends first.
inline std::vector<Posted>& vacated(State& state, std::size_t slot, Random random) {
  end_all(state, active_of(state.requests[slot]), random);
  give_back(state.requests[slot]);
  return state.requests[slot];
}

}  // namespace sequences
