// SPDX-License-Identifier: BSD-3-Clause
#include "report.hpp"

namespace stretto::modelling {

void rules(const Request& request) {
  const select::Shape& call = request.shape;
  const select::Rules all = read_rules(request);
  unsigned line = 0;
  for (const select::Rule& rule : all) {
    const bool fits = rule.fits(call.ranks, request.nodes) && rule.bytes.has(call.bytes);
    if (rule.selection.collective == call.collective && fits) line = rule.selection.line;
  }
  Json json;
  json.open('{');
  json.key("rules").integer(static_cast<std::int64_t>(all.size()));
  json.key("line").integer(line);
  json.close('}');
  json.end();
}

}  // namespace stretto::modelling
