// SPDX-License-Identifier: BSD-3-Clause
// stretto-model: the library's own schedules in virtual time, for `stretto model` and `stretto
// explain`. It also reads rules. It takes one command and the options of request.hpp, and writes
// JSON to stdout.
#include <string>

#include "report.hpp"

int main(int argc, char** argv) {
  using namespace stretto::modelling;
  const std::string command = argc > 1 ? argv[1] : "";
  if (command == "benchmark")
    benchmark();
  else if (command == "predict")
    predict(parse_request(argc, argv));
  else if (command == "trace")
    trace(parse_request(argc, argv));
  else if (command == "goal")
    write_goal(parse_request(argc, argv));
  else if (command == "explain")
    explain(parse_request(argc, argv));
  else if (command == "rules")
    rules(parse_request(argc, argv));
  else if (command == "job")
    job(argc, argv);
  else if (command == "chains")
    chains(parse_request(argc, argv));
  else
    stop("usage: stretto-model predict|trace|goal|explain|rules|job|chains|benchmark [OPTION VALUE]...");
}
