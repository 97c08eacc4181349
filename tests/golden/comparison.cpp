#include "golden/comparison.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include <fmt/format.h>

namespace speedo::golden {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double difference(float got, float reference) {
  if (got == reference || (std::isnan(got) && std::isnan(reference))) return 0.0;
  const double error = std::abs(static_cast<double>(got) - static_cast<double>(reference));
  return std::isfinite(error) ? error : kInfinity;
}

// The largest difference as a share of the reference's largest magnitude.
double relative_error(std::span<const float> got, std::span<const float> reference) {
  double error = 0.0;
  double scale = 0.0;
  for (std::size_t i = 0; i < got.size(); ++i) {
    error = std::max(error, difference(got[i], reference[i]));
    if (std::isfinite(reference[i])) {
      scale = std::max(scale, std::abs(static_cast<double>(reference[i])));
    }
  }
  if (error == 0.0) return 0.0;
  return scale > 0.0 ? error / scale : kInfinity;
}

}  // namespace

void Comparison::values(const std::string& name, std::span<const float> got,
                        std::span<const float> reference, double tolerance) {
  if (got.size() != reference.size()) {
    note_fault(fmt::format("{} has {} values, not {}", name, got.size(), reference.size()),
               kInfinity);
    return;
  }
  const double error = relative_error(got, reference);
  if (worst_name_.empty() || error > worst_error_) {
    worst_name_ = name;
    worst_error_ = error;
  }
  if (error > tolerance) {
    note_fault(fmt::format("{} is off by {:.2g} (limit {:.2g})", name, error, tolerance), error);
  }
}

void Comparison::require(bool condition, const std::string& what) {
  if (!condition) note_fault(what, kInfinity);
}

void Comparison::note_fault(std::string text, double error) {
  faults_.push_back(std::move(text));
  if (faults_.size() == 1 || error > worst_fault_) {
    worst_fault_ = error;
    std::swap(faults_.front(), faults_.back());
  }
}

std::string Comparison::summary() const {
  if (!faults_.empty()) {
    const std::size_t others = faults_.size() - 1;
    return others == 0 ? faults_.front() : fmt::format("{}; {} more", faults_.front(), others);
  }
  if (worst_name_.empty()) return "equal";
  return fmt::format("max {:.2g} at {}", worst_error_, worst_name_);
}

}  // namespace speedo::golden
