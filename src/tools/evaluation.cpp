#include "tools/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include <fmt/format.h>

#include <speedo/backend/labels.hpp>
#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

std::optional<double> share(std::int64_t part, std::int64_t whole) {
  if (whole == 0) return std::nullopt;
  return static_cast<double>(part) / static_cast<double>(whole);
}

// The probability that a softmax gives the class.
double softmax_of(const std::vector<double>& scores, std::int64_t place) {
  const double highest = *std::max_element(scores.begin(), scores.end());
  double sum = 0.0;
  for (const double score : scores) sum += std::exp(score - highest);
  return std::exp(scores[static_cast<std::size_t>(place)] - highest) / sum;
}

}  // namespace

std::optional<double> ClassScores::precision() const { return share(hits, answers); }
std::optional<double> ClassScores::recall() const { return share(hits, samples); }
std::optional<double> ClassScores::f1() const { return share(2 * hits, samples + answers); }

Evaluation::Evaluation(Options options)
    : options_(std::move(options)),
      row_(static_cast<std::size_t>(options_.classes)),
      top_k_hits_(options_.top_k.size()),
      classes_(static_cast<std::size_t>(options_.classes)),
      confidence_(kConfidenceBins) {}

Result<void> Evaluation::add(std::span<const float> scores, std::span<const float> labels,
                             const ScoreLayout& layout) {
  SPEEDO_ASSERT(layout.classes == options_.classes);
  SPEEDO_ASSERT(static_cast<std::int64_t>(labels.size()) == layout.outer * layout.inner);
  SPEEDO_ASSERT(scores.size() == labels.size() * row_.size());
  const auto inner = static_cast<std::size_t>(layout.inner);
  for (std::size_t i = 0; i < labels.size(); ++i) {
    if (is_ignored(labels[i], options_.ignored)) {
      ++ignored_;
      continue;
    }
    const std::int64_t label = label_index(labels[i], options_.classes);
    if (label < 0) {
      return Error{ErrorCode::kData,
                   fmt::format("label {} is none of the {} classes", labels[i], options_.classes)};
    }
    const float* const first = scores.data() + i / inner * row_.size() * inner + i % inner;
    for (std::size_t k = 0; k < row_.size(); ++k) row_[k] = first[k * inner];
    SPEEDO_TRY(add_sample(label));
  }
  return {};
}

Result<void> Evaluation::add_sample(std::int64_t label) {
  const double truth = row_[static_cast<std::size_t>(label)];
  std::int64_t as_good = 0;  // other classes
  std::int64_t answer = label;
  for (std::int64_t k = 0; k < options_.classes; ++k) {
    const double score = row_[static_cast<std::size_t>(k)];
    if (!std::isfinite(score)) {
      return Error{ErrorCode::kNotFinite,
                   fmt::format("the score of class {} for a sample is {}", k, score)};
    }
    if (k == label || score < truth) continue;
    ++as_good;
    if (answer == label || score > row_[static_cast<std::size_t>(answer)]) answer = k;
  }
  ++samples_;
  for (std::size_t i = 0; i < top_k_hits_.size(); ++i) {
    if (as_good < options_.top_k[i]) ++top_k_hits_[i];
  }
  const bool is_hit = answer == label;
  const double confidence = options_.has_probabilities ? row_[static_cast<std::size_t>(answer)]
                                                       : softmax_of(row_, answer);
  const int bin =
      std::clamp(static_cast<int>(confidence * kConfidenceBins), 0, kConfidenceBins - 1);
  ConfidenceBin& place = confidence_[static_cast<std::size_t>(bin)];
  ++place.samples;
  place.confidence_sum += confidence;
  ++classes_[static_cast<std::size_t>(label)].samples;
  ++classes_[static_cast<std::size_t>(answer)].answers;
  ++confusions_[{label, answer}];
  if (is_hit) {
    ++hits_;
    ++place.hits;
    ++classes_[static_cast<std::size_t>(label)].hits;
  }
  return {};
}

std::optional<double> Evaluation::top_k_share(std::size_t index) const {
  return share(top_k_hits_[index], samples_);
}

std::optional<double> Evaluation::accuracy() const { return share(hits_, samples_); }

double Evaluation::mean_over_classes(std::optional<double> (ClassScores::*value)() const) const {
  double sum = 0.0;
  std::int64_t count = 0;
  for (const ClassScores& each : classes_) {
    if (each.samples == 0) continue;
    sum += (each.*value)().value_or(0.0);
    ++count;
  }
  return count == 0 ? 0.0 : sum / static_cast<double>(count);
}

double Evaluation::mean_precision() const { return mean_over_classes(&ClassScores::precision); }
double Evaluation::mean_recall() const { return mean_over_classes(&ClassScores::recall); }
double Evaluation::mean_f1() const { return mean_over_classes(&ClassScores::f1); }

double Evaluation::weighted_f1() const {
  double sum = 0.0;
  for (const ClassScores& each : classes_) {
    sum += each.f1().value_or(0.0) * static_cast<double>(each.samples);
  }
  return samples_ == 0 ? 0.0 : sum / static_cast<double>(samples_);
}

std::vector<ConfidenceBin> Evaluation::confidence_in(int bins) const {
  SPEEDO_ASSERT(bins > 0 && kConfidenceBins % bins == 0);
  std::vector<ConfidenceBin> wide(static_cast<std::size_t>(bins));
  const std::size_t each = confidence_.size() / wide.size();
  for (std::size_t i = 0; i < confidence_.size(); ++i) {
    ConfidenceBin& bin = wide[i / each];
    bin.samples += confidence_[i].samples;
    bin.hits += confidence_[i].hits;
    bin.confidence_sum += confidence_[i].confidence_sum;
  }
  return wide;
}

double Evaluation::calibration_error() const {
  double sum = 0.0;
  for (const ConfidenceBin& bin : confidence_in(10)) {
    sum += std::abs(bin.confidence_sum - static_cast<double>(bin.hits));
  }
  return samples_ == 0 ? 0.0 : sum / static_cast<double>(samples_);
}

}  // namespace speedo
