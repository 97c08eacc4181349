#include "nets/check.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"
#include "support/kernels.hpp"

namespace speedo::nets {
namespace {

// Where a value lies so near a kink (ReLU, a maximum) that rounding decides, one of these finds it
// with near certainty: each moves data ten times as far as rounding does.
constexpr int kJitters = 8;
// Nets of which one is tried with one thread more.
constexpr std::uint64_t kThirdThreadEach = 8;

double largest(const std::vector<float>& values) {
  double result = 0.0;
  for (const float value : values) result = std::max(result, std::fabs(double{value}));
  return result;
}

// Infinite if one of two is not finite, or their counts differ.
double largest_difference(const std::vector<float>& a, const std::vector<float>& b) {
  if (a.size() != b.size()) return HUGE_VAL;
  double result = 0.0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    const double difference = std::fabs(double{a[i]} - double{b[i]});
    result = std::max(result, std::isfinite(difference) ? difference : HUGE_VAL);
  }
  return result;
}

bool is_gradient(const std::string& name) { return name.starts_with("gradient"); }

class Reference {
 public:
  Reference(const caffe::NetParameter& net, Data data, Expected expected)
      : net_(net), data_(data), expected_(std::move(expected)) {}

  const Arrays& arrays() const { return expected_.arrays; }

  // Nothing of what is no parameter's gradient.
  Summed summed(const std::string& name) const {
    const auto found = expected_.summed.find(name);
    return found == expected_.summed.end() ? Summed() : found->second;
  }

  // The scale that an array's rounding has: sums that cancel (a bias before a BatchNorm) are left
  // with that of their terms.
  double largest_gradient() const {
    double result = 0.0;
    for (const auto& [name, values] : arrays()) {
      if (is_gradient(name)) result = std::max(result, largest(values));
    }
    return result;
  }

  // How far the array moves when the data move by a millionth.
  double noise(const std::string& name) {
    if (moved_.empty()) move();
    double result = 0.0;
    for (const Arrays& moved : moved_) {
      result = std::max(result, largest_difference(moved.at(name), arrays().at(name)));
    }
    return result;
  }

 private:
  void move() {
    for (data_.jitter = 1; data_.jitter <= kJitters; ++data_.jitter) {
      auto moved = compute_reference(net_, data_);
      if (moved) moved_.push_back(std::move(moved->arrays));
    }
  }

  const caffe::NetParameter& net_;
  Data data_;
  Expected expected_;
  std::vector<Arrays> moved_;
};

// The worst of the arrays that differ; a wrong one is worse than any sensitive one.
Verdict compare(const Arrays& got, Reference& reference) {
  Verdict verdict;
  double worst = 0.0;
  for (const auto& [name, values] : got) {
    const auto expected = reference.arrays().find(name);
    if (expected == reference.arrays().end()) {
      return {Kind::kWrong, name + " is unknown to the reference"};
    }
    Difference difference{.error = largest_difference(values, expected->second),
                          .scale = largest(expected->second)};
    if (judge(difference) == Kind::kRight) continue;
    difference.noise = reference.noise(name);
    if (is_gradient(name)) difference.largest_gradient = reference.largest_gradient();
    const Summed summed = reference.summed(name);
    difference.summed = summed.magnitudes;
    difference.terms = summed.terms;
    const Kind kind = judge(difference);
    if (kind == Kind::kRight) continue;
    const double scale = difference.scale;
    const double share = scale > 0.0 ? difference.error / scale : HUGE_VAL;
    if (kind < verdict.kind || (kind == verdict.kind && share <= worst)) continue;
    worst = share;
    verdict = {kind, fmt::format("{} is off by {:.2g} of its largest value (limit {:.0e}; it moves "
                                 "by {:.2g} with its data)",
                                 name, share, kTolerance, difference.noise / scale)};
  }
  return verdict;
}

std::string_view name(Purpose purpose) {
  switch (purpose) {
    case Purpose::kLook:
      break;
    case Purpose::kTrain:
      return "training";
    case Purpose::kTest:
      return "testing";
  }
  return "with keep_blobs";
}

Verdict check_with(const caffe::NetParameter& net, int threads, Purpose purpose, const Data& data,
                   Reference& reference) {
  const std::unique_ptr<Backend> backend = test::make_backend(threads);
  const auto got = compute(net, *backend, purpose, data);
  Verdict verdict =
      got ? compare(*got, reference) : Verdict{Kind::kWrong, "refused: " + got.error().message};
  verdict.what += fmt::format(", {} thread{}, {}", threads, threads == 1 ? "" : "s", name(purpose));
  return verdict;
}

}  // namespace

Verdict check(const caffe::NetParameter& net, std::uint64_t data_seed) {
  const Data data{data_seed, 0};
  auto expected = compute_reference(net, data);
  if (!expected) {
    return {Kind::kWrong, "refused by the reference: " + expected.error().message};
  }
  Reference reference(net, data, std::move(*expected));
  Verdict worst;
  std::vector<int> thread_counts{1, 2};
  if (data_seed % kThirdThreadEach == 0) thread_counts.push_back(3);
  for (const int threads : thread_counts) {
    for (const Purpose purpose : {Purpose::kLook, Purpose::kTrain, Purpose::kTest}) {
      Verdict verdict = check_with(net, threads, purpose, data, reference);
      if (verdict.kind > worst.kind) worst = std::move(verdict);
    }
  }
  return worst;
}

}  // namespace speedo::nets
