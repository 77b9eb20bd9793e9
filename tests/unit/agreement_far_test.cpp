// SPDX-License-Identifier: BSD-3-Clause
// What a communicator of very many ranks on several nodes costs a process before its members
// decline. One rank is real, the others say what it says.
#include <gtest/gtest.h>

#include <cstring>

#include "engine/policy.hpp"
#include "engine/process.hpp"
#include "engine/settings.hpp"

namespace stretto::test {
namespace {

struct Others {
  int size;
  std::size_t exchanges = 0, bytes = 0;
};

// The last rank is on another host: that is the first word of what each rank says in exchange 0.
bool all_but_the_last_agree(void* context, const void* mine, void* all, std::size_t bytes) {
  Others& others = *static_cast<Others*>(context);
  for (int r = 0; r < others.size; ++r)
    std::memcpy(static_cast<char*>(all) + bytes * static_cast<std::size_t>(r), mine, bytes);
  char* const last = static_cast<char*>(all) + bytes * static_cast<std::size_t>(others.size - 1);
  *last = static_cast<char>(*last ^ 1);
  ++others.exchanges;
  others.bytes += bytes * static_cast<std::size_t>(others.size);
  return true;
}

TEST(AgreementOfManyRanks, NothingIsReservedBeforeMembersAreKnownToBeOnOneNode) {
  engine::Settings settings;
  settings.fragments = engine::fragments_of(0);
  engine::Process* const process = engine::process_create(settings, {});
  for (const int size : {66, 1024, 131'072, 1'280'000}) {
    Others others{size};
    engine::Decline why;
    const engine::Bootstrap bootstrap{0, size, &others, all_but_the_last_agree, true};
    EXPECT_EQ(engine::comm_create(*process, bootstrap, kNativeCollectives, why), nullptr);
    EXPECT_EQ(why.reason, engine::kOnSeveralNodes) << size;
    EXPECT_EQ(why.rank, size - 1);
    EXPECT_EQ(others.exchanges, 1u);
    EXPECT_LE(others.bytes, 16u * static_cast<std::size_t>(size));
    EXPECT_EQ(process->segment.base(), nullptr) << size << ": a segment was made";
  }
  engine::process_destroy(process);
}

}  // namespace
}  // namespace stretto::test
