// SPDX-License-Identifier: BSD-3-Clause
// Ranks that are many calls ahead of those that read their data. They are roots of a Bcast or
// Scatter whose peers have not come. Or they are peers of a Gather or Reduce whose root has not
// come.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>

#include "base/signature.hpp"
#include "engine/process.hpp"
#include "threads/job.hpp"

namespace stretto::test {
namespace {

using engine::Comm;

enum class Form { bcast, scatter, gather, reduce };
constexpr Form kForms[] = {Form::bcast, Form::scatter, Form::gather, Form::reduce};

void add(void* out, const void* left, const void* right, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    static_cast<std::uint32_t*>(out)[i] =
        static_cast<const std::uint32_t*>(left)[i] + static_cast<const std::uint32_t*>(right)[i];
  }
}

// One call of so many words, whose contents name the call. True if the received data are right.
bool call(Comm& comm, Form form, int root, std::uint32_t number, std::size_t words) {
  const int rank = engine::comm_rank(comm), size = engine::comm_size(comm);
  const auto ranks = static_cast<std::size_t>(size);
  const auto word = [&](int from, std::size_t i) {
    return number * 1000u + static_cast<std::uint32_t>(from) * 100u + static_cast<std::uint32_t>(i);
  };
  std::vector<std::uint32_t> one(words, 0), all(words * ranks, 0);
  const Region mine{reinterpret_cast<char*>(one.data()), 4 * words, &kBytes};
  const Blocks blocks{reinterpret_cast<char*>(all.data()), &kBytes, 4 * words};
  const bool is_root = rank == root;
  bool right = true;
  if (form == Form::bcast) {
    for (std::size_t i = 0; i < words && is_root; ++i) one[i] = word(root, i);
    right = engine::bcast(comm, mine, root, true).status == Status::ok;
    for (std::size_t i = 0; i < words; ++i) right = right && one[i] == word(root, i);
  } else if (form == Form::scatter) {
    for (std::size_t i = 0; i < words * ranks && is_root; ++i) all[i] = word(static_cast<int>(i / words), i % words);
    right = engine::scatter(comm, Collective::scatter, blocks, mine, root, false, true).status == Status::ok;
    for (std::size_t i = 0; i < words; ++i) right = right && one[i] == word(rank, i);
  } else if (form == Form::gather) {
    for (std::size_t i = 0; i < words; ++i) one[i] = word(rank, i);
    right = engine::gather(comm, Collective::gather, mine, blocks, root, false, true).status == Status::ok;
    for (std::size_t i = 0; i < words * ranks && is_root; ++i)
      right = right && all[i] == word(static_cast<int>(i / words), i % words);
  } else {
    for (std::size_t i = 0; i < words; ++i) one[i] = word(rank, i);
    std::vector<std::uint32_t> sum(words, 0);
    const engine::KernelArgs v{reinterpret_cast<const char*>(one.data()),
                               is_root ? reinterpret_cast<char*>(sum.data()) : nullptr, 4 * words, true};
    right = engine::reduce(comm, v, {add, 4, 1, element_code(ElementKind::integer, 4)}, root).status == Status::ok;
    for (std::size_t i = 0; i < words && is_root; ++i) {
      std::uint32_t wanted = 0;
      for (int r = 0; r < size; ++r) wanted += word(r, i);
      right = right && sum[i] == wanted;
    }
  }
  return right;
}

// Whether that rank reads what others send.
bool reads(Form form, int rank, int root) { return (form == Form::bcast || form == Form::scatter) == (rank != root); }

class Ahead : public testing::TestWithParam<int> {};

// The writers make all their calls before a reader begins: they wait for no reader.
TEST_P(Ahead, WhoWritesShortMessagesWaitsForNobody) {
  const int size = GetParam();
  Group world(everybody(size)), dup(everybody(size));
  std::atomic<int> through[3 * std::size(kForms) * 4] = {};
  run_job(size, {}, [&](int rank, engine::Process& process) {
    Comm* outer = make_comm(process, world, rank);
    ASSERT_NE(outer, nullptr);
    std::size_t stage = 0;
    for (const std::size_t words : {std::size_t{1}, std::size_t{30}, std::size_t{90}}) {
      Comm* comm = make_comm(process, dup, rank);
      ASSERT_NE(comm, nullptr);
      for (const Form form : kForms) {
        for (const std::uint32_t calls : {1u, 33u, 100u, 250u}) {
          const int root = static_cast<int>(stage) % size;
          const bool late = reads(form, rank, root);
          const int writers = form == Form::bcast || form == Form::scatter ? 1 : size - 1;
          while (late && through[stage] < writers) std::this_thread::yield();
          for (std::uint32_t k = 0; k < calls; ++k)
            ASSERT_TRUE(call(*comm, form, root, k, words)) << "rank " << rank << " stage " << stage << " call " << k;
          if (!late) ++through[stage];
          EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
          ++stage;
        }
      }
      engine::comm_free(comm);
    }
    engine::comm_free(outer);
  });
}

// Roots, forms, lengths and delays at random. The memory that queues moved to goes back with their
// communicators.
TEST_P(Ahead, AnyOrderOfCalls) {
  const int size = GetParam();
  Group world(everybody(size)), dup(everybody(size));
  run_job(size, {}, [&](int rank, engine::Process& process) {
    Comm* outer = make_comm(process, world, rank);
    ASSERT_NE(outer, nullptr);
    std::uint64_t highest = 0;
    for (unsigned turn = 0; turn < 12; ++turn) {
      Comm* comm = make_comm(process, dup, rank);
      ASSERT_NE(comm, nullptr);
      std::mt19937 same(turn), own(turn * 100 + static_cast<unsigned>(rank));
      for (std::uint32_t k = 0; k < 600; ++k) {
        const Form form = kForms[same() % (k % 200 < 150 ? 2 : 4)];
        const int root = static_cast<int>(same() % 10 != 0 ? turn % static_cast<unsigned>(size)
                                                           : same() % static_cast<unsigned>(size));
        const std::size_t words = same() % 20 == 0 ? same() % 2000 : same() % 96;
        if (own() % 150 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(own() % 8));
        ASSERT_TRUE(call(*comm, form, root, k, words)) << "rank " << rank << " turn " << turn << " call " << k;
        if (same() % 200 == 0) EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
      }
      EXPECT_EQ(engine::barrier(*comm).status, Status::ok);
      if (turn < 6) highest = std::max(highest, comm->block_offset);
      EXPECT_LE(comm->block_offset, highest + (4 << 20)) << "blocks are not reused";
      engine::comm_free(comm);
    }
    engine::comm_free(outer);
  });
}

// Where there is no memory for a longer ring, writers wait until readers have come.
TEST_P(Ahead, WithoutMemoryItWaits) {
  const int size = GetParam();
  engine::Settings settings;
  settings.slots = 4;
  settings.slot_bytes = 4096;
  bool made = false;
  for (settings.segment_bytes = 64 << 10; !made && settings.segment_bytes < (64 << 20);
       settings.segment_bytes += 32 << 10) {
    Group world(everybody(size));
    std::atomic<int> members{0};
    run_job(size, settings, [&](int rank, engine::Process& process) {
      Comm* comm = make_comm(process, world, rank);
      if (comm == nullptr) return;
      ++members;
      if (rank != 0) std::this_thread::sleep_for(std::chrono::milliseconds(20));
      for (std::uint32_t k = 0; k < 300; ++k)
        ASSERT_TRUE(call(*comm, Form::bcast, 0, k, 90)) << "rank " << rank << " call " << k;
      engine::comm_free(comm);
    });
    made = members == size;
  }
  EXPECT_TRUE(made);
}

INSTANTIATE_TEST_SUITE_P(Ranks, Ahead, testing::Values(2, 3, 5));

}  // namespace
}  // namespace stretto::test
