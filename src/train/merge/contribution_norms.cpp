#include "train/merge/contribution_norms.hpp"

#include <algorithm>
#include <cmath>

#include "store/chunk_range.hpp"

namespace speedo {
namespace {

// In double, where squares of floats neither overflow nor vanish; several sums, for the vectors of
// the processor.
double sum_of_squares(std::span<const float> values) {
  constexpr std::size_t kSums = 8;
  double sums[kSums] = {};
  std::size_t i = 0;
  for (; i + kSums <= values.size(); i += kSums) {
    for (std::size_t k = 0; k < kSums; ++k) {
      const double value = values[i + k];
      sums[k] += value * value;
    }
  }
  double total = 0.0;
  for (; i < values.size(); ++i) total += static_cast<double>(values[i]) * values[i];
  for (const double sum : sums) total += sum;
  return total;
}

}  // namespace

bool NormFilter::is_outlier(double norm) const {
  if (factor_ <= 0.0 || norms_.size() < kNormsMin) return false;
  std::vector<double> sorted = norms_;
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return norm > factor_ * *middle;
}

void NormFilter::keep(double norm) {
  if (norms_.size() < kNormsKept) {
    norms_.push_back(norm);
    next_ = 0;
    return;
  }
  norms_[next_] = norm;
  next_ = (next_ + 1) % kNormsKept;
}

NormSums::NormSums(std::uint64_t element_count, std::size_t contributions)
    : element_count_(element_count),
      contributions_(contributions),
      squares_(chunk_count(element_count) * contributions) {}

ChunkMerge::Fault NormSums::merge(std::size_t chunk, Parts parts) {
  if (chunk >= chunk_count(element_count_)) return std::nullopt;
  const std::size_t length = chunk_elements(element_count_, chunk);
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double squares = sum_of_squares(parts[i].first(length));
    if (!std::isfinite(squares)) return i;
    squares_[chunk * contributions_ + i] = squares;
  }
  return std::nullopt;
}

double NormSums::norm(std::size_t contribution) const {
  double sum = 0.0;
  for (std::size_t at = contribution; at < squares_.size(); at += contributions_) {
    sum += squares_[at];
  }
  return std::sqrt(sum);
}

}  // namespace speedo
