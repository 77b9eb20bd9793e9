// SPDX-License-Identifier: BSD-3-Clause
// Random programs: sequences of MPI calls of all kinds, generated from seeds. Each rank writes down
// what it gets, to be compared with the same sequences under another library.
//
//   sequences FIRST_SEED COUNT OPERATIONS [--logs FOLDER] [--only I,J,...] [--without FEATURE,...]
//             [--list] [--threads]
//
// Operation i of a sequence draws from a random stream of its own, so --only does not change it.
// What all ranks must do alike follows from (seed, i); what is left to a rank also from its number.
// An operation whose slot is empty does nothing. Waits concern what all ranks posted in earlier
// operations, in one order, so no sequence can deadlock.
#include <mpi.h>

#include <cstdlib>
#include <thread>

#include "sequences_messages.hpp"
#include "sequences_objects.hpp"

namespace sequences {
namespace {

// Two threads, each with collectives on a communicator of its own.
void threads(State& s, Random& all) {
  const auto first = static_cast<std::size_t>(all.below(kComms));
  const std::size_t second = (first + static_cast<std::size_t>(all.between(1, kComms - 1))) % kComms;
  if (!s.options.threads) return s.say("nothing: one thread");
  s.say("two threads on communicators " + number_of(first) + " and " + number_of(second));
  const auto calls = static_cast<int>(all.between(1, 20));
  std::string found[2];
  const auto work = [&](std::size_t slot, std::string& text) {
    const Communicator& c = s.comms[slot];
    for (int i = 0; i < calls && !c.empty(); ++i) {
      std::vector<unsigned> in(static_cast<std::size_t>(1 + i * 300)), out(in.size());
      for (std::size_t k = 0; k < in.size(); ++k)
        in[k] = static_cast<unsigned>(Random(s.seed, s.world_rank, k, slot).next());
      MPI_Allreduce(in.data(), out.data(), static_cast<int>(in.size()), MPI_UNSIGNED, MPI_SUM, c.handle);
      MPI_Bcast(out.data(), static_cast<int>(out.size()), MPI_UNSIGNED, i % c.size, c.handle);
      text += " " + std::to_string(out[0] ^ out.back());
    }
  };
  std::thread other(work, second, std::ref(found[1]));
  work(first, found[0]);
  other.join();
  s.log(s.index, 0, "two threads:" + found[0] + " and" + found[1]);
}

void operate(State& s) {
  Random all(s.seed, s.index);
  Random mine(s.seed, s.index, s.world_rank, 17);
  if (mine.chance(5)) std::this_thread::sleep_for(std::chrono::microseconds(mine.below(300)));
  const auto what = all.below(100);
  if (what < 45) return collective(s, all, mine);
  if (what < 53) return requested_ring(s, all, mine);
  if (what < 57) return exchange(s, all, mine);
  if (what < 60) return probed(s, all, mine);
  if (what < 62) return from_anyone(s, all, mine);
  if (what < 64) return cancelled(s, all, mine);
  if (what < 71) return start_some(s, all, mine);
  if (what < 77) return wait_for_some(s, all, mine);
  if (what < 81) return poke(s, mine);
  if (what < 88) return make_communicator(s, all);
  if (what < 90) return free_communicator(s, all);
  if (what < 95) return make_element(s, all);
  if (what < 96) return free_element(s, all);
  if (what < 97) return renew_operations(s);
  if (what < 99) return wrong_call(s, all);
  threads(s, all);
}

// Every communicator is there at first but the last two, and half of the datatypes.
void begin(State& s) {
  s.comms[0].handle = MPI_COMM_WORLD;
  know(s.comms[0]);
  s.own.make();
  Random all(s.seed, -1);
  s.comms[1] = copy_of(s.comms[0], false);
  s.comms[2] = split_of(s.comms[0], all);
  s.comms[3] = all.chance(50) ? grid_of(s.comms[0], all) : graph_of(s.comms[0], all);
  for (std::size_t i = 0; i < kElements / 2; ++i) s.elements[i] = draw_element(all);
}

void end(State& s) {
  Random mine(s.seed, -2, s.world_rank);
  end_all(s, active_of_slots(s, 0, kRequests - 1), mine);
  for (std::vector<Posted>& slot : s.requests) give_back(slot);
  for (std::size_t i = 1; i < kComms; ++i) release(s, s.comms[i]);
  for (const Element& e : s.elements) s.dropped.push_back(e.handle);
  for (MPI_Datatype& handle : s.dropped) {
    if (handle != MPI_DATATYPE_NULL) MPI_Type_free(&handle);
  }
  s.own.free();
  MPI_Barrier(MPI_COMM_WORLD);  // detached sends have arrived
}

void run(const Options& options, MPI_Comm any_tag, std::FILE* log) {
  for (int i = 0; i < options.count; ++i) {
    State s(options);
    s.seed = options.first + static_cast<std::uint64_t>(i);
    s.any_tag = any_tag;
    MPI_Comm_rank(MPI_COMM_WORLD, &s.world_rank);
    MPI_Comm_size(MPI_COMM_WORLD, &s.world_size);
    begin(s);
    for (s.index = 0; s.index < options.operations; ++s.index) {
      if (options.only.empty() || options.only.contains(s.index)) operate(s);
    }
    end(s);
    if (log) s.write(log);
  }
}

std::vector<std::string> words(const std::string& list) {
  std::vector<std::string> found;
  for (std::size_t at = 0; at < list.size();) {
    const std::size_t comma = std::min(list.find(',', at), list.size());
    found.push_back(list.substr(at, comma - at));
    at = comma + 1;
  }
  return found;
}

Options options_of(int argc, char** argv) {
  Options o;
  o.first = std::strtoull(argv[1], nullptr, 10);
  o.count = std::atoi(argv[2]);
  o.operations = std::atoi(argv[3]);
  for (int i = 4; i < argc; ++i) {
    const std::string option = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (option == "--list") o.list = true;
    if (option == "--threads") o.threads = true;
    if (option == "--logs") o.logs = value;
    if (option == "--without") {
      for (const std::string& word : words(value)) o.without.insert(word);
    }
    if (option == "--only") {
      for (const std::string& word : words(value)) o.only.insert(std::atoi(word.c_str()));
    }
  }
  return o;
}

}  // namespace
}  // namespace sequences

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const sequences::Options options = sequences::options_of(argc, argv);
  int provided = 0, rank = 0;
  MPI_Init_thread(&argc, &argv, options.threads ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  MPI_Comm any_tag = MPI_COMM_NULL;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  MPI_Comm_dup(MPI_COMM_WORLD, &any_tag);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  std::FILE* log =
      options.logs.empty() ? nullptr : std::fopen((options.logs + "/" + std::to_string(rank)).c_str(), "w");
  sequences::run(options, any_tag, log);
  if (log) std::fclose(log);
  MPI_Comm_free(&any_tag);
  MPI_Finalize();
  return 0;
}
