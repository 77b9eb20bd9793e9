// SPDX-License-Identifier: BSD-3-Clause
#include "job_laws.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace stretto::modelling {
namespace {

struct LawShape {
  const char* name;
  double (*of)(double ranks);
};
// Those before others win where both fit as well.
constexpr LawShape kShapes[] = {
    {"constant", [](double) { return 1.0; }},
    {"1/P", [](double p) { return 1 / p; }},
    {"log P", [](double p) { return std::log2(p); }},
    {"P", [](double p) { return p; }},
    {"1/sqrt(P)", [](double p) { return 1 / std::sqrt(p); }},
    {"P^(-2/3)", [](double p) { return std::pow(p, -2.0 / 3); }},
    {"sqrt(P)", [](double p) { return std::sqrt(p); }},
    {"log P / P", [](double p) { return std::log2(p) / p; }},
    {"1/P^2", [](double p) { return 1 / (p * p); }},
};
// One term is good enough if it is as right as this: twice as far away it may be off by four times
// as much. Two terms are always right of two recordings.
constexpr double kGoodLaw = 0.01;

int floor_log2(int ranks) { return std::bit_width(static_cast<unsigned>(ranks)) - 1; }
int ceil_log2(int ranks) { return ranks < 2 ? 0 : floor_log2(ranks - 1) + 1; }
int floor_sqrt(int ranks) {
  int root = 0;
  while ((root + 1) * (root + 1) <= ranks) ++root;
  return root;
}

struct CountForm {
  const char* name;
  std::int64_t (*of)(int ranks);
};
constexpr CountForm kForms[] = {
    {"", [](int) -> std::int64_t { return 0; }},
    {"P", [](int p) -> std::int64_t { return p; }},
    {"log2(P)", [](int p) -> std::int64_t { return ceil_log2(p); }},
    {"floor(log2(P))", [](int p) -> std::int64_t { return floor_log2(p); }},
    {"sqrt(P)", [](int p) -> std::int64_t { return floor_sqrt(p); }},
    {"2 P", [](int p) -> std::int64_t { return 2 * p; }},
    {"P/2", [](int p) -> std::int64_t { return p / 2; }},
    {"2 log2(P)", [](int p) -> std::int64_t { return 2 * ceil_log2(p); }},
    {"2 sqrt(P)", [](int p) -> std::int64_t { return 2 * floor_sqrt(p); }},
};

// Weighted by the values, so that each counts for as much.
struct Terms {
  double constant, factor;
};
Terms two_terms(const std::vector<Measured>& measured, const LawShape& shape) {
  double n = 0, f = 0, ff = 0, y = 0, fy = 0;
  for (const Measured& each : measured) {
    const double weight = 1 / (each.value * each.value), by = shape.of(each.ranks);
    n += weight;
    f += weight * by;
    ff += weight * by * by;
    y += weight * each.value;
    fy += weight * by * each.value;
  }
  const double determinant = n * ff - f * f;
  if (std::abs(determinant) < 1e-12 * n * ff) return {0, 0};
  return {(y * ff - f * fy) / determinant, (n * fy - f * y) / determinant};
}

}  // namespace

double Law::at(int ranks) const { return constant_ + factor_ * kShapes[shape_].of(ranks); }

std::string Law::name() const {
  if (constant_ == 0 && factor_ == 0) return "none";
  return std::string(constant_ > 0 ? "constant + " : "") + kShapes[shape_].name;
}

Law Law::fitted(const std::vector<Measured>& measured) {
  Law best;
  best.error_ = std::numeric_limits<double>::infinity();
  if (std::any_of(measured.begin(), measured.end(), [](const Measured& each) { return each.value <= 0; })) {
    for (const Measured& each : measured) best.constant_ = std::max(best.constant_, each.value);
    best.error_ = best.constant_ > 0 ? 1 : 0;
    return best;
  }
  const auto consider = [&](Law law) {
    law.error_ = 0;
    for (const Measured& each : measured)
      law.error_ = std::max(law.error_, std::abs(law.at(each.ranks) / each.value - 1));
    if (law.error_ < best.error_ - 1e-9) best = law;
  };
  for (std::size_t shape = 0; shape < std::size(kShapes); ++shape) {
    double middle = 0;  // of the logarithms: errors on both sides are as large
    for (const Measured& each : measured)
      middle += std::log(each.value / kShapes[shape].of(each.ranks)) / static_cast<double>(measured.size());
    Law law;
    law.shape_ = shape;
    law.factor_ = std::exp(middle);
    consider(law);
  }
  if (best.error_ <= kGoodLaw) return best;
  for (std::size_t shape = 1; shape < std::size(kShapes); ++shape) {
    const Terms terms = two_terms(measured, kShapes[shape]);
    if (terms.constant <= 0 || terms.factor <= 0) continue;
    Law law;
    law.shape_ = shape;
    law.constant_ = terms.constant;
    law.factor_ = terms.factor;
    consider(law);
  }
  return best;
}

bool Count::find(const std::vector<std::pair<int, std::int64_t>>& counts) {
  for (form_ = 0; form_ < std::size(kForms); ++form_) {
    beside_ = counts.front().second - kForms[form_].of(counts.front().first);
    const auto fits = [&](const auto& each) { return at(each.first) == each.second; };
    if (std::all_of(counts.begin(), counts.end(), fits)) return true;
  }
  return false;
}

std::int64_t Count::at(int ranks) const { return kForms[form_].of(ranks) + beside_; }

std::string Count::name() const {
  if (form_ == 0) return std::to_string(beside_);
  const std::string sign = beside_ < 0 ? " - " : " + ";
  return kForms[form_].name + (beside_ == 0 ? "" : sign + std::to_string(std::abs(beside_)));
}

}  // namespace stretto::modelling
