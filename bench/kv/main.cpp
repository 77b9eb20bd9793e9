// SPDX-License-Identifier: BSD-3-Clause
// stretto-kv-bench: S3's microbenchmark of reader-writer schemes, for `stretto bench --suite kv`.
// It writes one JSON object to stdout, and lines "progress DONE TOTAL" to stderr while it runs.
//
//   stretto-kv-bench check --schemes A,B --clients 2,8 --sections N
//   stretto-kv-bench measure --schemes A,B --clients 1,2 --modes read,write,concurrent
//                            --repetitions N --length-ms N
//
// Within a repetition the schemes follow each other, so that a drift of the machine affects all of
// them alike.
#include <cstring>
#include <string>

#include "correctness.hpp"
#include "ds21.hpp"
#include "modes.hpp"
#include "swap.hpp"

namespace stretto::kv::bench {
namespace {

struct Options {
  std::string command;
  std::vector<std::string> schemes, modes;
  std::vector<unsigned> clients;
  std::uint64_t sections = 20'000, length_ms = 50, repetitions = 10;
};

std::vector<std::string> split(const std::string& text) {
  std::vector<std::string> parts;
  for (std::size_t at = 0; at <= text.size();) {
    const std::size_t comma = std::min(text.find(',', at), text.size());
    parts.push_back(text.substr(at, comma - at));
    at = comma + 1;
  }
  return parts;
}

[[noreturn]] void usage(const std::string& why) {
  std::fprintf(stderr, "stretto-kv-bench: %s\n", why.c_str());
  std::exit(2);
}

std::uint64_t number(const std::string& text, std::uint64_t most) {
  char* end = nullptr;
  const unsigned long long value = std::strtoull(text.c_str(), &end, 10);
  if (text.empty() || *end != 0 || value == 0 || value > most)
    usage("'" + text + "' is no number from 1 to " + std::to_string(most));
  return value;
}

// The library's schemes, and those that are here for comparison or to be found out.
template <class Visit>
bool with_any(const std::string& name, Visit visit) {
  const auto is = [&](auto tag) { return name == tag.name ? (visit(tag), true) : false; };
  return with_scheme(name.c_str(), visit) || is(SchemeTag<Ds21>{}) || is(SchemeTag<Swap>{}) || is(SchemeTag<Dummy>{}) ||
         is(SchemeTag<PlainMutex>{});
}

Options parse(int argc, char** argv) {
  if (argc < 2) usage("check or measure?");
  Options options;
  options.command = argv[1];
  for (int i = 2; i + 1 < argc; i += 2) {
    const std::string name = argv[i], value = argv[i + 1];
    if (name == "--schemes") {
      options.schemes = split(value);
    } else if (name == "--modes") {
      options.modes = split(value);
    } else if (name == "--clients") {
      for (const auto& part : split(value)) options.clients.push_back(static_cast<unsigned>(number(part, 4096)));
    } else if (name == "--sections") {
      options.sections = number(value, 1'000'000'000);
    } else if (name == "--length-ms") {
      options.length_ms = number(value, 60'000);
    } else if (name == "--repetitions") {
      options.repetitions = number(value, 10'000);
    } else {
      usage("unknown option " + name);
    }
  }
  for (const auto& scheme : options.schemes) {
    if (!with_any(scheme, [](auto) {})) usage("unknown scheme '" + scheme + "'");
  }
  for (const auto& mode : options.modes) {
    if (mode != "read" && mode != "write" && mode != "concurrent") usage("unknown mode '" + mode + "'");
  }
  return options;
}

void progress(std::size_t done, std::size_t total) { std::fprintf(stderr, "progress %zu %zu\n", done, total); }

std::string check_named(const std::string& scheme, const Trial& trial) {
  std::string failure;
  with_any(scheme, [&](auto tag) { failure = check<decltype(tag)::template Of>(trial); });
  return failure;
}

// Exit status 1 if a scheme failed.
int check_all(const Options& options) {
  std::size_t done = 0;
  bool good = true;
  std::printf("{\"checks\": [");
  for (const auto& scheme : options.schemes) {
    for (const unsigned clients : options.clients) {
      const std::string failure =
          check_named(scheme, {.clients = clients, .sections = std::max<std::uint64_t>(options.sections, clients)});
      good &= failure.empty();
      std::printf("%s\n{\"scheme\": \"%s\", \"clients\": %u, \"failure\": \"%s\"}", done == 0 ? "" : ",",
                  scheme.c_str(), clients, failure.c_str());
      progress(++done, options.schemes.size() * options.clients.size());
    }
  }
  std::printf("]}\n");
  return good ? 0 : 1;
}

Sample measure_one(const std::string& scheme, const std::string& mode, unsigned clients, std::uint64_t length_ns) {
  Sample sample;
  with_any(scheme, [&](auto tag) {
    const auto run = mode == "read"    ? read_only<decltype(tag)::template Of>
                     : mode == "write" ? write_only<decltype(tag)::template Of>
                                       : concurrent<decltype(tag)::template Of>;
    sample = run(clients, length_ns);
  });
  return sample;
}

int measure_all(const Options& options) {
  const std::size_t total =
      options.modes.size() * options.clients.size() * options.repetitions * options.schemes.size();
  std::size_t done = 0;
  std::printf("{\"samples\": [");
  for (const auto& mode : options.modes) {
    for (const unsigned clients : options.clients) {
      for (std::uint64_t repetition = 0; repetition < options.repetitions; ++repetition) {
        for (const auto& scheme : options.schemes) {
          const Sample sample = measure_one(scheme, mode, clients, options.length_ms * 1'000'000);
          std::printf(
              "%s\n{\"mode\": \"%s\", \"scheme\": \"%s\", \"clients\": %u, \"repetition\": %llu, \"locks_per_s\": "
              "%.6g, "
              "\"write_acquire_us\": %.6g}",
              done == 0 ? "" : ",", mode.c_str(), scheme.c_str(), clients, static_cast<unsigned long long>(repetition),
              sample.locks_per_s, sample.write_acquire_us);
          std::fflush(stdout);  // before the next fork
          progress(++done, total);
        }
      }
    }
  }
  std::printf("]}\n");
  return 0;
}

}  // namespace
}  // namespace stretto::kv::bench

int main(int argc, char** argv) {
  using namespace stretto::kv::bench;
  Options options = parse(argc, argv);
  std::setvbuf(stdout, nullptr, _IOLBF, 1 << 16);
  if (options.schemes.empty()) {
    stretto::kv::any_scheme([&](auto tag) {
      options.schemes.emplace_back(tag.name);
      return false;
    });
  }
  if (options.modes.empty()) options.modes = {"read", "write", "concurrent"};
  if (options.clients.empty()) options.clients = {1, 2, 4};
  if (options.command == "check") return check_all(options);
  if (options.command == "measure") return measure_all(options);
  usage("'" + options.command + "': check or measure?");
}
