// SPDX-License-Identifier: BSD-3-Clause
// docs/options.md retells the option table; this test fails when it is stale. STRETTO_TEST_UPDATE=1 writes it anew.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "base/options.hpp"

using namespace stretto;

namespace {

constexpr const char* kHead =
    "# Options\n"
    "\n"
    "<!-- Made from the table in src/base/options_table.cpp: STRETTO_TEST_UPDATE=1 build/release/tests/unit "
    "--gtest_filter='OptionsDocument.*' -->\n"
    "\n"
    "An option is an environment variable, or a line `key = value` of `stretto.toml` in the working directory (or of "
    "the file\n"
    "that `STRETTO_CONFIG` names). The variable wins over the file, the file over the default; an empty variable "
    "counts as not\n"
    "set. Sizes are bytes, or take K, M or G (KiB, MiB, GiB): `64K`. Ranks may differ in every option: where they must "
    "not, they\n"
    "agree (off on one rank is off on all; a collective that one rank leaves to the MPI, all do; schedules are what "
    "all ranks ask for, over\n"
    "the levels that rank 0 names and by the rules that it reads; the strictest check counts, and the strictest order "
    "of combining).\n"
    "\n"
    "An unknown name is a warning that says which name is near. A bad value is an error that says option, value, where "
    "it came\n"
    "from and what is allowed; with `STRETTO=off` in the environment it is a warning, too. Errors in files, this one "
    "and those that\n"
    "options name, begin with `FILE:LINE:COLUMN:`.\n"
    "\n"
    "| variable | in `stretto.toml` | default | allowed | |\n"
    "|---|---|---|---|---|\n";

constexpr const char* kTail =
    "\n"
    "`stretto.toml` is the flat part of TOML: strings in one line, decimal integers, `true` and `false`, comments; no "
    "tables.\n"
    "\n"
    "```toml\n"
    "# stretto.toml\n"
    "slots = 16\n"
    "slot_bytes = \"64K\"\n"
    "wait = \"yield\"\n"
    "bcast = \"mpi\"   # leave MPI_Bcast to the MPI\n"
    "```\n";

std::string document() {
  std::string text = kHead;
  options_describe(
      Options(),
      [](void* context, const OptionDescription& row) {
        std::string key = *row.key ? "`" + std::string(row.key) + "`" : "–";
        std::string fallback = *row.default_value ? "`" + std::string(row.default_value) + "`" : "–";
        *static_cast<std::string*>(context) += "| `" + std::string(row.name) + "` | " + key + " | " + fallback + " | " +
                                               row.allowed + " | " + row.help + " |\n";
      },
      &text);
  return text + kTail;
}

TEST(OptionsDocument, IsUpToDate) {
  const auto path = std::filesystem::path(STRETTO_SOURCE_DIR "/docs/options.md");
  if (std::getenv("STRETTO_TEST_UPDATE")) std::ofstream(path) << document();
  std::ifstream in(path);
  std::stringstream found;
  found << in.rdbuf();
  EXPECT_EQ(found.str(), document()) << "stale: run again with STRETTO_TEST_UPDATE=1";
}

// The example in the document is one that the reader accepts without a word.
TEST(OptionsDocument, ExampleIsAccepted) {
  const std::string tail = kTail;
  const std::size_t begin = tail.find("# stretto.toml");
  char name[] = "/tmp/stretto-document-XXXXXX";
  ASSERT_NE(mkdtemp(name), nullptr);
  std::ofstream(std::string(name) + "/stretto.toml") << tail.substr(begin, tail.rfind("```") - begin);
  Options options;
  OptionsReport report;
  const char* const none[] = {nullptr};
  EXPECT_EQ(options_load_from(options, report, none, name), Status::ok);
  EXPECT_EQ(report.count, 0);
  EXPECT_EQ(options.slots(), 16u);
  EXPECT_EQ(options.wait(), WaitChoice::yield);
  std::filesystem::remove_all(name);
}

}  // namespace
