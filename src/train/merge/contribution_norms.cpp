#include "train/merge/contribution_norms.hpp"

#include <algorithm>
#include <cmath>

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

ChunkSquares::ChunkSquares(const ParameterLayout& layout)
    : element_count_(static_cast<std::uint64_t>(layout.element_count())), statistics_(layout) {}

double ChunkSquares::of(std::size_t chunk, std::span<const float> values) const {
  const std::span<const float> own = values.first(chunk_elements(element_count_, chunk));
  double sum = 0.0, left_out = 0.0;
  statistics_.for_each_part(chunk * chunk_length(), own.size(),
                            [&](std::size_t begin, std::size_t count, bool is_statistic) {
                              (is_statistic ? left_out : sum) +=
                                  sum_of_squares(own.subspan(begin, count));
                            });
  return std::isfinite(left_out) ? sum : left_out;
}

NormSums::NormSums(const ParameterLayout& layout, std::size_t contributions)
    : of_chunk_(layout),
      contributions_(contributions),
      squares_(of_chunk_.chunks() * contributions) {}

ChunkMerge::Fault NormSums::merge(std::size_t chunk, Parts parts) {
  if (chunk >= of_chunk_.chunks()) return std::nullopt;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const double squares = of_chunk_.of(chunk, parts[i]);
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

std::vector<double> NormSums::squares(std::size_t contribution) const {
  std::vector<double> squares;
  for (std::size_t at = contribution; at < squares_.size(); at += contributions_) {
    squares.push_back(squares_[at]);
  }
  return squares;
}

MergeAsSeen::MergeAsSeen(std::unique_ptr<ChunkMerge> merge, const ParameterLayout& layout,
                         std::vector<std::vector<double>> seen, std::atomic<bool>& has_changed)
    : merge_(std::move(merge)),
      squares_(layout),
      seen_(std::move(seen)),
      has_changed_(has_changed) {}

// Of what is merged itself, as a checksum can be made to fit other values.
ChunkMerge::Fault MergeAsSeen::merge(std::size_t chunk, Parts parts) {
  for (std::size_t i = 0; i < parts.size(); ++i) {
    if (chunk >= seen_[i].size() || squares_.of(chunk, parts[i]) == seen_[i][chunk]) continue;
    has_changed_ = true;
    return i;
  }
  return merge_->merge(chunk, parts);
}

}  // namespace speedo
