// SPDX-License-Identifier: BSD-3-Clause
#include "observe/other_calls.hpp"

#include "base/units.hpp"

namespace stretto::observe {
namespace {

constexpr const char* kKeys[kOtherKinds] = {"messages", "one_sided", "files", "communicators"};
constexpr const char* kWords[kOtherKinds] = {"messages and waits", "one-sided calls", "files", "making communicators"};

}  // namespace

void json_others(StatsText& out, const OtherTotals& totals) {
  out.add(",\"other_calls\":{");
  for (int k = 0; k < kOtherKinds; ++k) {
    out.add("%s\"%s\":{\"calls\":%llu,\"ns\":%llu}", k != 0 ? "," : "", kKeys[k], ull{totals.calls[k]},
            ull{totals.ns[k]});
  }
  out.add("}");
}

void text_others(StatsText& out, const OtherTotals& sum, std::uint64_t run_ns, std::uint64_t ranks) {
  const char* between = "beside collectives: ";
  for (int k = 0; k < kOtherKinds; ++k) {
    if (sum.calls[k] == 0) continue;
    const double part = run_ns != 0 ? static_cast<double>(sum.ns[k]) / static_cast<double>(run_ns) : 0;
    out.add("%s%s %s (%.0f%%)", between, kWords[k], format_time(sum.ns[k] / ranks).text, 100 * part);
    between = ", ";
  }
  if (*between == ',') out.add("\n");
}

}  // namespace stretto::observe
