// SPDX-License-Identifier: BSD-3-Clause
// Where calls come from: the list of files, what waiting threads say, and lines of Python.
#include "shm/call_sites.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <random>
#include <string>
#include <vector>

#include "mpi/host/python_line.hpp"
#include "observe/python_stack.hpp"

namespace stretto {
namespace {

using shm::CallSite;
using shm::CallSites;
using shm::Modules;

TEST(CallSites, AnAddressIsOneWithinTheCallAndRelativeToItsFile) {
  const auto sites = std::make_unique<CallSites>();
  ASSERT_TRUE(sites->modules.add(0x1000, 0x2000, 0x400, "/bin/app"));
  EXPECT_STREQ(CallSite(*sites, 1, 0x1101).text, "/bin/app+0xd00");
  EXPECT_STREQ(CallSite(*sites, 1, 0x2000).text, "/bin/app+0x1bff") << "the call is the last instruction there";
  EXPECT_STREQ(CallSite(*sites, 1, 0x2001).text, "");
  EXPECT_STREQ(CallSite(*sites, 1, 0).text, "");
}

TEST(CallSites, BindingsSayNothing) {
  const auto sites = std::make_unique<CallSites>();
  ASSERT_TRUE(sites->modules.add(0x1000, 0x2000, 0, "/lib/libmpi_mpifh.so.40"));
  ASSERT_TRUE(sites->modules.add(0x3000, 0x4000, 0, "/lib/mpi4py/MPI.so"));
  ASSERT_TRUE(sites->modules.add(0x5000, 0x6000, 0, "/lib/libmpi/app"));
  EXPECT_STREQ(CallSite(*sites, 1, 0x1101).text, "");
  EXPECT_STREQ(CallSite(*sites, 1, 0x3101).text, "");
  EXPECT_STREQ(CallSite(*sites, 1, 0x5101).text, "/lib/libmpi/app+0x5100");
}

TEST(CallSites, AFileInThePlaceOfAnotherOneReplacesIt) {
  const auto from = std::make_unique<Modules>(), to = std::make_unique<Modules>();
  ASSERT_TRUE(from->add(0x1000, 0x2000, 0, "/a"));
  to->follow(*from);
  ASSERT_TRUE(from->add(0x1800, 0x2800, 0, "/b"));
  EXPECT_EQ(from->find(0x1100), nullptr);
  EXPECT_STREQ(to->find(0x1900)->path, "/a");
  to->follow(*from);
  EXPECT_EQ(to->find(0x1100), nullptr);
  EXPECT_STREQ(to->find(0x1900)->path, "/b");
}

TEST(CallSites, AFullListForgetsButInventsNothing) {
  const auto modules = std::make_unique<Modules>();
  for (std::uint64_t i = 0; i < Modules::kMost; ++i) ASSERT_TRUE(modules->add(i << 12, (i + 1) << 12, 0, "/x"));
  EXPECT_FALSE(modules->add(0, 0x1000, 0, "/new"));
  EXPECT_EQ(modules->find(0x10), nullptr);
  EXPECT_NE(modules->find(0x1010), nullptr);
}

TEST(CallSites, ALongPathLosesItsBeginning) {
  const auto modules = std::make_unique<Modules>();
  const std::string path = "/" + std::string(400, 'd') + "/app";
  ASSERT_TRUE(modules->add(0x1000, 0x2000, 0, path.c_str()));
  const std::string kept = modules->find(0x1000)->path;
  EXPECT_EQ(kept, path.substr(path.size() - shm::Module::kPathBytes + 1));
}

TEST(CallSites, WhatAThreadSaysBelongsToOneCall) {
  const auto sites = std::make_unique<CallSites>();
  shm::SourceLine line;
  std::snprintf(line.text, sizeof line.text, "solve.py:33 in step");
  sites->lines.write(7, line);
  EXPECT_STREQ(CallSite(*sites, 7, 0).text, "solve.py:33 in step");
  EXPECT_STREQ(CallSite(*sites, 7 + shm::SourceNotes::kNotes, 0).text, "");
  sites->lines.of[7].number.store_release(shm::SourceNote::kBusy);  // another thread is writing there
  sites->lines.write(7, line);
  EXPECT_STREQ(CallSite(*sites, 7, 0).text, "");
}

// ---- Lines of Python ----

struct Bytes {
  std::vector<unsigned char> all;
  std::size_t at = 0;
  static int next(void* self) {
    auto& bytes = *static_cast<Bytes*>(self);
    return bytes.at < bytes.all.size() ? bytes.all[bytes.at++] : -1;
  }
};

int line_of(observe::LineTableKind kind, std::vector<unsigned char> table, std::uint64_t offset) {
  Bytes bytes{std::move(table)};
  return observe::python_line_of(kind, {&bytes, Bytes::next}, offset, 10);
}

TEST(PythonLine, OfIncrements) {  // 3.9
  const std::vector<unsigned char> table = {0, 1, 8, 1, 10, 255};
  constexpr auto kind = observe::LineTableKind::increments;
  EXPECT_EQ(line_of(kind, table, 0), 11);
  EXPECT_EQ(line_of(kind, table, 7), 11);
  EXPECT_EQ(line_of(kind, table, 8), 12);
  EXPECT_EQ(line_of(kind, table, 100), 11);
}

TEST(PythonLine, OfRanges) {  // 3.10
  const std::vector<unsigned char> table = {4, 1, 2, 128, 6, 2};
  constexpr auto kind = observe::LineTableKind::ranges;
  EXPECT_EQ(line_of(kind, table, 2), 11);
  EXPECT_EQ(line_of(kind, table, 4), 0) << "no line";
  EXPECT_EQ(line_of(kind, table, 6), 13);
  EXPECT_EQ(line_of(kind, table, 12), 0) << "beyond the table";
}

// From 3.11 on: a short form, one with columns and a line further on, the long form two lines back,
// one without columns, and one without a line.
TEST(PythonLine, OfLocations) {
  const std::vector<unsigned char> table = {0x80 | 1, 0x12, 0x80 | 11 << 3 | 1, 4,        9,    0x80 | 14 << 3, 5, 0,
                                            1,        1,    0x80 | 13 << 3,     0x40 | 8, 0x01, 0x80 | 15 << 3};
  constexpr auto kind = observe::LineTableKind::locations;
  EXPECT_EQ(line_of(kind, table, 3), 10);
  EXPECT_EQ(line_of(kind, table, 4), 11);
  EXPECT_EQ(line_of(kind, table, 8), 9);
  EXPECT_EQ(line_of(kind, table, 10), 9 + 36);
  EXPECT_EQ(line_of(kind, table, 12), 0);
  EXPECT_EQ(line_of(kind, table, 14), 0);
}

TEST(PythonLine, AnyBytesAreReadToTheirEndAtMost) {
  std::minstd_rand random(1);
  for (int i = 0; i < 20'000; ++i) {
    std::vector<unsigned char> table(random() % 40);
    for (unsigned char& byte : table) byte = static_cast<unsigned char>(random());
    for (const auto kind :
         {observe::LineTableKind::increments, observe::LineTableKind::ranges, observe::LineTableKind::locations})
      (void)line_of(kind, table, random() % 200);
  }
}

TEST(PythonLine, WithoutPythonThereIsNone) {
  char text[shm::SourceLine::kTextBytes] = "x";
  mpi::python_find();
  EXPECT_FALSE(mpi::python_line(text));
  EXPECT_STREQ(text, "");
}

}  // namespace
}  // namespace stretto
