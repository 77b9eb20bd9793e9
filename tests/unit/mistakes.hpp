// SPDX-License-Identifier: BSD-3-Clause
// What readers of files say about wrong texts.
#pragma once
#include <gtest/gtest.h>

#include <cstring>
#include <initializer_list>
#include <string>

#include "base/options_file.hpp"

namespace stretto::test {

struct Mistake {
  const char* text;
  const char* said;  // "line:column what"
};

inline std::string said(const FileError& error) {
  return std::to_string(error.line) + ":" + std::to_string(error.column) + " " +
         (error.what != nullptr ? error.what : "");
}

// A File refuses each text, for the reason given.
template <class File>
void expect_mistakes(std::initializer_list<Mistake> mistakes) {
  for (const Mistake& each : mistakes) {
    SCOPED_TRACE(each.text);
    File file;
    FileError error;
    EXPECT_FALSE(file.parse(each.text, std::strlen(each.text), &error));
    EXPECT_EQ(said(error), each.said);
  }
}

}  // namespace stretto::test
