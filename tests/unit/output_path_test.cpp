// SPDX-License-Identifier: BSD-3-Clause
// Names of output files with parts that each job fills in.
#include "base/output_path.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <regex>
#include <string>

namespace stretto::test {
namespace {

std::string filled(const char* pattern) {
  char path[256];
  return output_path(pattern, path, sizeof path) ? path : "wrong";
}

TEST(OutputPath, PartsAreFilledIn) {
  setenv("USER", "some/body", 1);
  setenv("SLURM_JOB_ID", "4711", 1);
  setenv("SLURM_STEP_ID", "3", 1);
  EXPECT_EQ(filled("/x/%u/%j.%s-100%%.json"), "/x/some_body/4711.3-100%.json");
  unsetenv("SLURM_JOB_ID");
  unsetenv("SLURM_STEP_ID");
  EXPECT_EQ(filled("%j-%s"), filled("%p") + "-0");
  EXPECT_TRUE(std::regex_match(filled("%d %t"), std::regex(R"(20\d\d-\d\d-\d\d \d{6})")));
  EXPECT_EQ(filled("%h").find('.'), std::string::npos);
}

TEST(OutputPath, WhatMeansNothingIsSaid) {
  EXPECT_EQ(filled("a%q"), "wrong");
  EXPECT_EQ(filled("a%"), "wrong");
  EXPECT_EQ(filled(std::string(300, 'x').c_str()), "wrong");
  EXPECT_EQ(filled(""), "");
}

}  // namespace
}  // namespace stretto::test
