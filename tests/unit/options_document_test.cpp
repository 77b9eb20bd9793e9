// SPDX-License-Identifier: BSD-3-Clause
// docs/options.md follows from the option table. This test fails when the page is stale.
// STRETTO_TEST_UPDATE=1 writes it anew.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/collective.hpp"
#include "base/options.hpp"

using namespace stretto;

namespace {

constexpr const char* kHead = R"--(# Options

<!-- Made from the table in src/base/options_table.cpp:
STRETTO_TEST_UPDATE=1 build/release/tests/unit --gtest_filter='OptionsDocument.*' -->

An option is an environment variable, or a line `key = value` of `stretto.toml` in the working
directory (or of the file that `STRETTO_CONFIG` names). The variable wins over the file, the file
over the default. An empty variable counts as not set. Sizes are bytes, or take K, M or G (KiB, MiB,
GiB): `64K`.

An unknown name is a warning, which says which name is near. A bad value is an error, which says
option, value, where it came from and what is allowed. With `STRETTO=off` in the environment it is a
warning, too. Errors in files begin with `FILE:LINE:COLUMN:`.

Ranks may differ in every option. Where all ranks must use the same value, they agree on it:

| option | what counts for all ranks |
|---|---|
| `STRETTO` | off on one rank is off on all |
| `STRETTO_<OP>` | mpi on one rank is mpi on all; schedule only if all ranks ask for it |
| `STRETTO_TCP` | off on one rank is off on all; always only if all ranks ask for it |
| `STRETTO_OVERLAP` | off on one rank is off on all; auto if one rank says so; the largest number |
| `STRETTO_AGREE` | first if one rank says so, else auto if one rank says so, else the least number |
| `STRETTO_HIERARCHY`, `STRETTO_RULES` | what rank 0 names |
| `STRETTO_FRAGMENT_BYTES`, `STRETTO_SLOT_BYTES` | rank 0's fragments, the shortest slot |
| `STRETTO_CHECK` | the highest |
| `STRETTO_REPRODUCIBLE` | rank if one rank says so, else mpi if one rank says so |
)--";

constexpr const char* kColumns = R"--(
| variable | in `stretto.toml` | default | allowed | |
|---|---|---|---|---|
)--";

// The groups of the page. What none of the first two names is for experts.
struct Group {
  const char* title;
  const char* about;
  std::vector<std::string_view> names;
};

const Group kGroups[] = {
    {"Everyday",
     "What a user may want to change.",
     {"STRETTO", "STRETTO_<OP>", "STRETTO_OVERLAP", "STRETTO_NONBLOCKING", "STRETTO_KIND", "STRETTO_REPRODUCIBLE",
      "STRETTO_RULES", "STRETTO_CONFIG"}},
    {"Diagnosis",
     "What says more about a run.",
     {"STRETTO_EXPLAIN", "STRETTO_LOG", "STRETTO_STATS", "STRETTO_WATCHDOG", "STRETTO_TIMEOUT", "STRETTO_CHECK"}},
    {"Expert", "What Stretto chooses well by itself, as a rule.", {}},
};

constexpr const char* kTail = R"--(
## The file

`stretto.toml` is the flat part of TOML: strings in one line, decimal integers, `true` and `false`,
comments; no tables.

```toml
# stretto.toml
slots = 16
slot_bytes = "64K"
wait = "yield"
bcast = "mpi"   # leave MPI_Bcast to the MPI
```
)--";

struct Row {
  std::string name, text;
};

std::string code(const char* text) { return *text ? "`" + std::string(text) + "`" : "–"; }

// The options of all collectives have one row: they differ in their names alone.
bool is_of_a_collective(const std::string& key) {
  return std::any_of(std::begin(kCollectiveNames), std::end(kCollectiveNames),
                     [&](const char* each) { return key == each; });
}

std::vector<Row> rows() {
  std::vector<Row> found;
  options_describe(
      Options(),
      [](void* context, const OptionDescription& row) {
        auto& all = *static_cast<std::vector<Row>*>(context);
        const bool op = is_of_a_collective(row.key);
        if (op && all.back().name == "STRETTO_<OP>") return;
        const std::string name = op ? "STRETTO_<OP>" : row.name;
        const std::string key = op ? "`<op>`" : code(row.key);
        const std::string help = (op ? "of a collective, as `STRETTO_BCAST`: " : "") + std::string(row.help);
        all.push_back({name, "| `" + name + "` | " + key + " | " + code(row.default_value) + " | " + row.allowed +
                                 " | " + help + " |\n"});
      },
      &found);
  return found;
}

int group_of(const std::string& name) {
  for (int i = 0; i < 2; ++i)
    for (const std::string_view each : kGroups[i].names)
      if (each == name) return i;
  return 2;
}

std::string document() {
  std::string text = kHead;
  const std::vector<Row> all = rows();
  for (int i = 0; i < 3; ++i) {
    text += "\n## " + std::string(kGroups[i].title) + "\n\n" + kGroups[i].about + "\n" + kColumns;
    for (const Row& row : all)
      if (group_of(row.name) == i) text += row.text;
  }
  return text + kTail;
}

TEST(OptionsDocument, GroupsNameWhatThereIs) {
  const std::vector<Row> all = rows();
  for (const Group& group : kGroups)
    for (const std::string_view name : group.names)
      EXPECT_TRUE(std::any_of(all.begin(), all.end(), [&](const Row& row) { return row.name == name; })) << name;
}

TEST(OptionsDocument, IsUpToDate) {
  const auto path = std::filesystem::path(STRETTO_SOURCE_DIR "/docs/options.md");
  if (std::getenv("STRETTO_TEST_UPDATE")) std::ofstream(path) << document();
  std::ifstream in(path);
  std::stringstream found;
  found << in.rdbuf();
  EXPECT_EQ(found.str(), document()) << "stale: run again with STRETTO_TEST_UPDATE=1";
}

// The reader accepts the document's example without a remark.
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
