// SPDX-License-Identifier: BSD-3-Clause
// Recordings with wrong bytes: the reader says so, or reads something, but no byte that is not
// there.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <vector>

#include "record/reader.hpp"
#include "record/writer.hpp"

namespace stretto::record {
namespace {

std::vector<std::uint8_t> good_file() {
  const std::string path = testing::TempDir() + "record-fuzz-" + std::to_string(getpid());
  Writer writer;
  EXPECT_EQ(writer.open(path.c_str(), {.rank = 1, .ranks = 4}), 0);
  const std::int64_t comm[] = {0, 0, 1, 4, 0, 0, 1, 4};
  writer.define(Definition::comm, comm, std::size(comm));
  const std::int64_t neighbors[] = {0, 2, 1, 3, 1, 2};
  writer.define(Definition::neighbors, neighbors, std::size(neighbors));
  writer.define(Definition::function, 0, "MPI_Send");
  for (std::int64_t i = 0; i < 3000; ++i) {
    const std::int64_t words[] = {0, 1, 0, static_cast<std::int64_t>(Role::made), 2, i % 5, i % 300 == 0 ? i : 1};
    writer.call(writer.term(words, std::size(words)), static_cast<std::uint64_t>(i * i), 77, i % 9 == 0 ? 5 : -1);
  }
  writer.finish();
  std::ifstream in(path, std::ios::binary);
  std::vector<std::uint8_t> bytes{std::istreambuf_iterator<char>(in), {}};
  std::filesystem::remove(path);
  return bytes;
}

// Reads all that there is. The number of calls is bounded, as a copy may say any length.
std::size_t read_all(const std::vector<std::uint8_t>& bytes) {
  Recording recording;
  if (!recording.read({bytes.data(), bytes.size()})) {
    EXPECT_NE(recording.failure(), nullptr);
    return 0;
  }
  std::size_t sum = 0;
  for (std::uint32_t term = 0; term < recording.terms(); ++term) {
    sum += recording.function(term).size + recording.place(term).size + recording.totals(term).calls;
    for (int role = 0; role < kRoles; ++role) {
      for (const std::int64_t value : recording.values(term, static_cast<Role>(role)))
        sum += static_cast<std::size_t>(value);
    }
  }
  for (const std::int32_t member : recording.members()) sum += static_cast<std::size_t>(member);
  Calls calls(recording);
  Calls::Call call;
  for (int i = 0; i < 10'000 && calls.next(&call); ++i) sum += call.term;
  return sum;
}

TEST(RecordFuzz, AnyBytes) {
  const std::vector<std::uint8_t> good = good_file();
  ASSERT_GT(read_all(good), 3000u);
  std::mt19937_64 random(48);
  std::size_t sum = 0;
  for (int round = 0; round < 3000; ++round) {
    std::vector<std::uint8_t> bytes = good;
    if (round % 5 == 0) bytes.resize(random() % bytes.size());
    for (std::uint64_t changes = random() % 20; changes > 0 && !bytes.empty(); --changes) {
      // Most of a chunk is empty: changes hit what is used, and the chunks' heads.
      const std::size_t chunk = random() % (1 + bytes.size() / kChunkBytes) * kChunkBytes;
      const std::size_t at = chunk + random() % (random() % 2 == 0 ? 16 : 400);
      if (at < bytes.size()) bytes[at] = static_cast<std::uint8_t>(random());
    }
    sum += read_all(bytes);
  }
  EXPECT_GT(sum, 0u);
}

}  // namespace
}  // namespace stretto::record
