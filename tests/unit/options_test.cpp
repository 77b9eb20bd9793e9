// SPDX-License-Identifier: BSD-3-Clause
#include "base/options.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "engine/policy.hpp"

using namespace stretto;

namespace {

// Loads settings from a made-up environment and a directory of its own.
struct OptionsTest : testing::Test {
  std::string directory;
  Options options;
  OptionsReport report;

  void SetUp() override {
    char name[] = "/tmp/stretto-options-XXXXXX";
    ASSERT_NE(mkdtemp(name), nullptr);
    directory = name;
  }
  void TearDown() override { std::filesystem::remove_all(directory); }

  void file(const std::string& text, const std::string& name = "stretto.toml") const {
    std::ofstream(directory + "/" + name) << text;
  }
  Status load(const std::vector<std::string>& environment = {}) {
    std::vector<const char*> pointers;
    for (const std::string& variable : environment) pointers.push_back(variable.c_str());
    pointers.push_back(nullptr);
    return options_load_from(options, report, pointers.data(), directory.c_str());
  }
  [[nodiscard]] std::string messages() const {
    std::string all;
    for (int i = 0; i < report.count; ++i) {
      all += (report.messages[i].level == LogLevel::error ? "E " : "W ") + std::string(report.messages[i].text) + "\n";
    }
    return all;
  }
  [[nodiscard]] bool says(const std::string& text) const { return messages().find(text) != std::string::npos; }
};

TEST_F(OptionsTest, DefaultsAreQuiet) {
  EXPECT_EQ(load(), Status::ok);
  EXPECT_EQ(messages(), "");
  EXPECT_TRUE(options.enabled());
  EXPECT_EQ(options.wanted(), (1u << kCollectives) - 1);
  EXPECT_EQ(options.check(), 1);
  EXPECT_EQ(options.stats(), StatsFormat::off);
  EXPECT_EQ(options.log(), LogLevel::warn);
}

// The engine's own defaults, which tests use, are those of the table.
TEST_F(OptionsTest, EngineDefaultsAgree) {
  const engine::Settings told = engine::settings_from(Options());
  const engine::Settings own;
  EXPECT_EQ(told.slots, own.slots);
  EXPECT_EQ(told.slot_bytes, own.slot_bytes);
  EXPECT_TRUE(told.fragments == own.fragments || told.fragments == kTuning.fragments_amd);
  EXPECT_EQ(told.segment_bytes, own.segment_bytes);
  EXPECT_EQ(told.streaming, own.streaming);
  EXPECT_EQ(told.wait, own.wait);
  EXPECT_EQ(told.check, own.check);
  EXPECT_EQ(told.watchdog_seconds, own.watchdog_seconds);
  EXPECT_EQ(told.timeout_seconds, own.timeout_seconds);
}

TEST(StoresPast, BeginAtARanksShareOfTheL3) {
  const sys::SharedCache l3{32 << 20, 8};
  const auto from = [&](int ranks) { return engine::past_from_bytes(StreamingChoice::automatic, l3, ranks, false); };
  if (!sys::cpu_is_amd()) {
    EXPECT_EQ(from(2), Tuning::kNever);
  } else {
    EXPECT_EQ(from(2), 16u << 20);
    EXPECT_EQ(from(8), 4u << 20);
    EXPECT_EQ(from(64), 4u << 20) << "eight of them share one";
  }
  EXPECT_EQ(engine::past_from_bytes(StreamingChoice::automatic, {}, 2, false), Tuning::kNever);
  EXPECT_EQ(engine::past_from_bytes(StreamingChoice::automatic, l3, 16, true),
            sys::cpu_is_amd() ? kTuning.stores_past_crowded_bytes : Tuning::kNever)
      << "other ranks use the caches before what has arrived is read";
  EXPECT_EQ(engine::past_from_bytes(StreamingChoice::off, l3, 2, false), Tuning::kNever);
  EXPECT_EQ(engine::past_from_bytes(StreamingChoice::always, {}, 2, false), 0u);
}

TEST(SingleCopy, BeginsEarlierWithMoreRanks) {
  const auto from = [](int ranks) { return engine::single_copy_from(SingleCopyChoice::automatic, ranks, true); };
  const Tuning::SingleCopyFrom few = from(3), many = from(8), most = from(1000);
  EXPECT_GE(few.scatter, many.scatter);
  EXPECT_GE(many.scatter, most.scatter);
  EXPECT_EQ(most.scatter, kTuning.single_copy_least);
  EXPECT_EQ(most.alltoall, kTuning.single_copy_least);
  if (sys::cpu_is_amd()) {
    EXPECT_EQ(few.scatter, 1u << 20);
    EXPECT_EQ(many.scatter, 256u << 10);
    EXPECT_EQ(many.gather, Tuning::kNever);
  }
  EXPECT_EQ(engine::single_copy_from(SingleCopyChoice::automatic, 2, false).scatter, Tuning::kNever);
  EXPECT_EQ(engine::single_copy_from(SingleCopyChoice::always, 2, false).bcast, shm::kMostInlineBytes + 1);
}

TEST(Slots, FillTheL2UnlessTheyAreGivenOrTheSegmentIsTooShort) {
  engine::Settings settings;
  const unsigned free = engine::slots_of(settings);
  EXPECT_GE(free * settings.slot_bytes, std::clamp(2 * sys::l2_bytes(), kTuning.lane_least, kTuning.lane_most));
  EXPECT_LE(free * settings.slot_bytes, kTuning.lane_most);
  settings.slot_bytes /= 2;
  EXPECT_EQ(engine::slots_of(settings), 2 * free);
  settings.segment_bytes = 16 << 20;
  EXPECT_LE(shm::Lanes::area_bytes(engine::slots_of(settings), settings.slot_bytes), settings.segment_bytes / 2);
  settings.slot_bytes = 4 << 20;
  EXPECT_EQ(engine::slots_of(settings), 8u);
  settings.slots = 3;
  EXPECT_EQ(engine::slots_of(settings), 3u);
}

TEST_F(OptionsTest, EnvironmentOfEveryKind) {
  EXPECT_EQ(
      load({"STRETTO=off", "STRETTO_REDUCE_SCATTER_BLOCK=mpi", "STRETTO_BARRIER=MPI", "STRETTO_BCAST=auto",
            "STRETTO_SLOTS=16", "STRETTO_SLOT_BYTES=64KiB", "STRETTO_FRAGMENT_BYTES=16K", "STRETTO_SEGMENT_BYTES=1G",
            "STRETTO_WAIT=nap", "STRETTO_CHECK=3", "STRETTO_STATS=json:/tmp/s.json", "STRETTO_LOG=debug", "OTHER=1"}),
      Status::ok);
  EXPECT_EQ(messages(), "");
  EXPECT_FALSE(options.enabled());
  const auto bit = [](Collective op) { return std::uint32_t{1} << static_cast<int>(op); };
  EXPECT_EQ(options.wanted(),
            ((1u << kCollectives) - 1) & ~bit(Collective::reduce_scatter_block) & ~bit(Collective::barrier));
  EXPECT_EQ(options.slots(), 16u);
  EXPECT_EQ(options.slot_bytes(), 65536u);
  EXPECT_EQ(engine::settings_from(options).fragments, (Tuning::Fragments{1, 16384, 16384}));
  EXPECT_EQ(options.segment_bytes(), std::size_t{1} << 30);
  EXPECT_EQ(options.wait(), WaitChoice::nap);
  EXPECT_EQ(options.check(), 3);
  EXPECT_EQ(options.stats(), StatsFormat::json);
  EXPECT_STREQ(options.stats_path, "/tmp/s.json");
  EXPECT_EQ(options.log(), LogLevel::debug);
}

TEST_F(OptionsTest, EveryCollectiveHasItsOption) {
  for (int op = 0; op < kCollectives; ++op) {
    std::string name = std::string("STRETTO_") + kCollectiveNames[op];
    for (char& c : name) c = static_cast<char>(std::toupper(c));
    EXPECT_EQ(load({name + "=mpi"}), Status::ok);
    EXPECT_EQ(options.wanted(), ((1u << kCollectives) - 1) & ~(1u << op)) << name;
  }
}

TEST_F(OptionsTest, FlagSpellings) {
  for (const char* text : {"off", "OFF", "0", "false", "no"}) {
    EXPECT_EQ(load({std::string("STRETTO=") + text}), Status::ok);
    EXPECT_FALSE(options.enabled()) << text;
  }
  for (const char* text : {"on", "1", "True", "yes"}) {
    EXPECT_EQ(load({std::string("STRETTO=") + text}), Status::ok);
    EXPECT_TRUE(options.enabled()) << text;
  }
}

TEST_F(OptionsTest, StatsForms) {
  const std::map<std::string, std::pair<StatsFormat, std::string>> forms = {
      {"off", {StatsFormat::off, ""}},
      {"text", {StatsFormat::text, ""}},
      {"json", {StatsFormat::json, ""}},
      {"text:out", {StatsFormat::text, "out"}},
      {"/a/b.json", {StatsFormat::json, "/a/b.json"}},
      {"./c.txt", {StatsFormat::text, "./c.txt"}},
      {"json:C:/x", {StatsFormat::json, "C:/x"}}};
  for (const auto& [text, meaning] : forms) {
    EXPECT_EQ(load({"STRETTO_STATS=" + text}), Status::ok) << messages();
    EXPECT_EQ(options.stats(), meaning.first) << text;
    EXPECT_EQ(options.stats_path, meaning.second) << text;
  }
  for (const char* text : {"jsn", "json:", "off:/x", "file.json"}) {
    EXPECT_EQ(load({std::string("STRETTO_STATS=") + text}), Status::invalid) << text;
  }
}

TEST_F(OptionsTest, BadValueSaysOptionValuePlaceAndWhatIsAllowed) {
  EXPECT_EQ(load({"STRETTO_SLOTS=many"}), Status::invalid);
  EXPECT_EQ(messages(), "E STRETTO_SLOTS: \"many\" (environment) is not a whole number; allowed: 0 to 64\n");
  EXPECT_EQ(options.slots(), 0u);
  file("\nslot_bytes = 100\n");
  EXPECT_EQ(load(), Status::invalid);
  EXPECT_EQ(
      messages(),
      "E " + directory + "/stretto.toml:2:1: slot_bytes: \"100\" is too small; allowed: 4K to 4M, a multiple of 64\n");
}

TEST_F(OptionsTest, BadValuesAreRefusedAtTheirEdges) {
  for (const char* bad :
       {"STRETTO_SLOTS=65", "STRETTO_SLOTS=8K", "STRETTO_SLOTS=-8", "STRETTO_SLOT_BYTES=4095",
        "STRETTO_SLOT_BYTES=4097", "STRETTO_SLOT_BYTES=5M", "STRETTO_WAIT=sleep", "STRETTO_WAIT=aut",
        "STRETTO_WAIT=auto|spin", "STRETTO_CHECK=4", "STRETTO_BCAST=on", "STRETTO_LOG=5", "STRETTO=maybe",
        "STRETTO_AGREE=0", "STRETTO_AGREE=-1", "STRETTO_AGREE=257", "STRETTO_AGREE=last", "STRETTO_AGREE=first|auto"}) {
    EXPECT_EQ(load({bad}), Status::invalid) << bad;
    EXPECT_EQ(report.errors, 1) << bad;
    EXPECT_TRUE(std::ranges::equal(options.value, Options().value)) << bad;
  }
  for (const char* good :
       {"STRETTO_SLOTS=0", "STRETTO_SLOTS=1", "STRETTO_SLOTS=64", "STRETTO_SLOT_BYTES=4096", "STRETTO_SLOT_BYTES=4M",
        "STRETTO_SLOT_BYTES=4160", "STRETTO_CHECK=0", "STRETTO_AGREE=1", "STRETTO_AGREE=256"}) {
    EXPECT_EQ(load({good}), Status::ok) << good << messages();
  }
  for (const auto& [text, value] : {std::pair{"STRETTO_AGREE=first", int{kAgreeFirst}},
                                    {"STRETTO_AGREE=Auto", int{kAgreeAuto}},
                                    {"STRETTO_AGREE=7", 7}}) {
    EXPECT_EQ(load({text}), Status::ok) << messages();
    EXPECT_EQ(options.agree(), value);
  }
}

TEST_F(OptionsTest, FileThenDefaultsBehindTheEnvironment) {
  file("# my machine\nslots = 4\nwait = \"yield\"   # laptop\r\nslot_bytes = '16K'\nstretto = true\ncheck=2\n");
  EXPECT_EQ(load({"STRETTO_SLOTS=32", "STRETTO_WAIT="}), Status::ok) << messages();
  EXPECT_EQ(options.slots(), 32u);
  EXPECT_EQ(options.wait(), WaitChoice::yield);  // an empty variable counts as not set
  EXPECT_EQ(options.slot_bytes(), 16384u);
  EXPECT_EQ(options.check(), 2);
  EXPECT_EQ(options.segment_bytes(), std::size_t{256} << 20);
}

// The file must not replace a mistyped variable: two ranks would run with a value that nobody asked
// for.
TEST_F(OptionsTest, BadVariableIsNotReplacedByTheFile) {
  file("slots = 4\n");
  EXPECT_EQ(load({"STRETTO_SLOTS=x"}), Status::invalid);
  EXPECT_EQ(options.slots(), 0u);
}

TEST_F(OptionsTest, ConfigNamesAnotherFile) {
  file("slots = 4\n");
  file("slots = 5\n", "other.toml");
  EXPECT_EQ(load({"STRETTO_CONFIG=other.toml"}), Status::ok);
  EXPECT_EQ(options.slots(), 5u);
  EXPECT_EQ(load({"STRETTO_CONFIG=" + directory + "/other.toml"}), Status::ok);
  EXPECT_EQ(options.slots(), 5u);
  EXPECT_EQ(load({"STRETTO_CONFIG=missing.toml"}), Status::invalid);
  EXPECT_TRUE(says("STRETTO_CONFIG")) << messages();
  EXPECT_TRUE(says("missing.toml: No such file or directory")) << messages();
}

TEST_F(OptionsTest, ConfigCannotStandInTheFile) {
  file("config = \"other.toml\"\n");
  EXPECT_EQ(load(), Status::ok);
  EXPECT_TRUE(says("/stretto.toml:1:1: config is not an option")) << messages();
}

TEST_F(OptionsTest, FilesThatAreNone) {
  std::filesystem::create_directory(directory + "/folder");
  EXPECT_EQ(load({"STRETTO_CONFIG=folder"}), Status::invalid);
  EXPECT_TRUE(says("Is a directory")) << messages();
  file(std::string(70000, '#'));
  EXPECT_EQ(load(), Status::invalid);
  EXPECT_TRUE(says("more than 64K")) << messages();
  std::filesystem::remove(directory + "/stretto.toml");
  ASSERT_EQ(mkfifo((directory + "/stretto.toml").c_str(), 0600), 0);
  EXPECT_EQ(load(), Status::ok);  // it reads as empty and, above all, does not wait for a writer
}

TEST_F(OptionsTest, SyntaxErrorSaysLineAndColumn) {
  file("slots = 4\nwait = yield\n");
  EXPECT_EQ(load(), Status::invalid);
  EXPECT_TRUE(says("/stretto.toml:2:8: a value was expected")) << messages();
}

TEST_F(OptionsTest, KeyTwiceIsAnError) {
  file("slots = 4\nslots = 5\n");
  EXPECT_EQ(load(), Status::invalid);
  EXPECT_TRUE(says(":2:1: this key stands here a second time")) << messages();
}

TEST_F(OptionsTest, UnknownNamesAreWarningsWithTheNearestName) {
  file("slot_byte = \"8K\"\nSTRETTO_SLOTS = 9\nqqqqqqqq = 1\n");
  EXPECT_EQ(load({"STRETTO_SLOTBYTES=8K", "STRETTO_ALLGATHERW=mpi", "STRETTO_ZZZZZZZZZ=1", "STRETTO_FOO=1",
                  "STRETTO_WIAT=nap", "STRETTOX=1", "MY_STRETTO_X=1"}),
            Status::ok);
  EXPECT_TRUE(says("W STRETTO_SLOTBYTES (environment) is not an option; did you mean STRETTO_SLOT_BYTES?"))
      << messages();
  EXPECT_TRUE(says("W STRETTO_ALLGATHERW (environment) is not an option; did you mean STRETTO_ALLGATHER"))
      << messages();
  EXPECT_TRUE(says("W STRETTO_ZZZZZZZZZ (environment) is not an option\n")) << messages();
  EXPECT_TRUE(says("W STRETTO_FOO (environment) is not an option\n")) << messages();
  EXPECT_TRUE(says("W STRETTO_WIAT (environment) is not an option; did you mean STRETTO_WAIT?")) << messages();
  EXPECT_TRUE(says("W " + directory + "/stretto.toml:1:1: slot_byte is not an option; did you mean slot_bytes?"))
      << messages();
  EXPECT_TRUE(says("/stretto.toml:2:1: STRETTO_SLOTS is not an option; did you mean slots?")) << messages();
  EXPECT_TRUE(says(":3:1: qqqqqqqq is not an option\n")) << messages();
  EXPECT_EQ(report.count, 8);
  EXPECT_EQ(options.slots(), 0u);
}

TEST_F(OptionsTest, FormerNamesWorkAndTheNewOneComesFirst) {
  EXPECT_EQ(load({"STRETTO_SOCKETS=always"}), Status::ok);
  EXPECT_EQ(options.tcp(), TcpChoice::always);
  EXPECT_EQ(load({"STRETTO_SOCKETS=always", "STRETTO_TCP=off"}), Status::ok);
  EXPECT_EQ(options.tcp(), TcpChoice::off);
  EXPECT_EQ(load({"STRETTO_SOCKETS=often"}), Status::invalid);
  EXPECT_TRUE(says("E STRETTO_SOCKETS: \"often\" (environment) is not a choice"));
  file("sockets = \"off\"\n");
  EXPECT_EQ(load(), Status::ok);
  EXPECT_EQ(options.tcp(), TcpChoice::off);
  EXPECT_EQ(load({"STRETTO_TCP=always"}), Status::ok);
  EXPECT_EQ(options.tcp(), TcpChoice::always);
  file("sockets = \"off\"\ntcp = \"off\"\n");
  EXPECT_EQ(load(), Status::invalid) << "one option, named twice";
}

TEST_F(OptionsTest, NamesOfTheLauncherAreKnown) {
  EXPECT_EQ(load({"STRETTO_MPI_VENVS=/tmp", "STRETTO_FAULT=x:1:EIO", "STRETTO_PYTHON=/usr/bin/python3",
                  "STRETTO_ROOT=/opt/stretto", "STRETTO_TEST_LONG=1"}),
            Status::ok);
  EXPECT_EQ(messages(), "");
}

TEST_F(OptionsTest, SwitchedOffByTheEnvironmentNothingIsAnError) {
  file("slots = [\n");
  EXPECT_EQ(load({"STRETTO=off", "STRETTO_SLOTS=many", "STRETTO_WAIT=sleep"}), Status::ok);
  EXPECT_FALSE(options.enabled());
  EXPECT_EQ(report.count, 3);
  EXPECT_EQ(messages().find("E "), std::string::npos) << messages();
}

TEST_F(OptionsTest, MoreMessagesThanPlacesAreCounted) {
  std::vector<std::string> environment;
  for (int i = 0; i < 40; ++i) environment.push_back("STRETTO_UNKNOWN_" + std::to_string(i) + "=1");
  environment.emplace_back("STRETTO_SLOTS=x");
  EXPECT_EQ(load(environment), Status::invalid);
  EXPECT_EQ(report.count, OptionsReport::kMessages);
  EXPECT_EQ(report.count + report.left_out, 41);
  EXPECT_TRUE(says("STRETTO_SLOTS"));  // errors come first
}

TEST_F(OptionsTest, LongValuesAreRefusedOrCut) {
  const std::string longer(5000, 'x');
  EXPECT_EQ(load({"STRETTO_STATS=text:/" + longer}), Status::invalid);
  EXPECT_TRUE(says("is too long"));
  EXPECT_EQ(load({"STRETTO_CONFIG=" + longer}), Status::invalid);
  EXPECT_EQ(load({"STRETTO_WAIT=" + longer}), Status::invalid);
  EXPECT_EQ(load({"STRETTO_" + longer + "=1"}), Status::ok);
  EXPECT_EQ(report.count, 1);
}

TEST_F(OptionsTest, DescriptionTellsValueAndOrigin) {
  file("\nslot_bytes = 65536\n");
  ASSERT_EQ(load({"STRETTO_STATS=json:/x/y.json"}), Status::ok);
  std::map<std::string, std::vector<std::string>> rows;
  options_describe(
      options,
      [](void* context, const OptionDescription& row) {
        (*static_cast<std::map<std::string, std::vector<std::string>>*>(context))[row.name] = {
            row.key, row.value, row.default_value, row.allowed, row.origin};
      },
      &rows);
  EXPECT_EQ(rows.size(), static_cast<std::size_t>(kOptions));
  EXPECT_EQ(rows["STRETTO_SLOT_BYTES"],
            (std::vector<std::string>{"slot_bytes", "64K", "32K", "4K to 4M, a multiple of 64",
                                      directory + "/stretto.toml:2"}));
  EXPECT_EQ(rows["STRETTO_STATS"][1], "json:/x/y.json");
  EXPECT_EQ(rows["STRETTO_STATS"][4], "environment");
  EXPECT_EQ(rows["STRETTO_WAIT"],
            (std::vector<std::string>{"wait", "auto", "auto", "auto, spin, yield, nap", "default"}));
  EXPECT_EQ(rows["STRETTO_CONFIG"][0], "");
  EXPECT_EQ(rows["STRETTO"][0], "stretto");
}

// For every option, the reader accepts what the description prints, with the same meaning.
TEST_F(OptionsTest, SpelledValuesReadBack) {
  ASSERT_EQ(load({"STRETTO_SLOTS=5", "STRETTO_SLOT_BYTES=4160", "STRETTO_SEGMENT_BYTES=33M", "STRETTO_WAIT=nap",
                  "STRETTO_SCAN=mpi", "STRETTO_STATS=text:/a", "STRETTO_LOG=info", "STRETTO=off"}),
            Status::ok);
  const Options first = options;
  std::vector<std::string> environment;
  for (int i = 0; i < kOptions; ++i) {
    char text[kOptionPathBytes + 8];
    option_spell(first, static_cast<Option>(i), text, sizeof text);
    environment.push_back(std::string(option_row(static_cast<Option>(i)).name) + "=" + text);
  }
  ASSERT_EQ(load(environment), Status::ok) << messages();
  for (int i = 0; i < kOptions; ++i)
    EXPECT_EQ(options.value[i], first.value[i]) << option_row(static_cast<Option>(i)).name;
  EXPECT_STREQ(options.stats_path, first.stats_path);
}

TEST_F(OptionsTest, LoadReadsTheRealEnvironment) {
  setenv("STRETTO_SLOTS", "11", 1);
  EXPECT_EQ(options_load(options, report), Status::ok) << messages();
  EXPECT_EQ(options.slots(), 11u);
  unsetenv("STRETTO_SLOTS");
}

}  // namespace
