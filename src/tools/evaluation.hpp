#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// What a net answered for the samples of one class, or of which it answered that class. A share
// without samples to take it of is nothing.
struct ClassScores {
  std::int64_t samples = 0;                 // that are of the class
  std::int64_t answers = 0;                 // that the net took for it
  std::int64_t hits = 0;                    // that are both
  std::optional<double> precision() const;  // of the answers, the share that is right
  std::optional<double> recall() const;     // of the samples, the share that was found
  std::optional<double> f1() const;         // the harmonic mean of both
};

// Samples whose confidence lies in one part of [0, 1].
struct ConfidenceBin {
  std::int64_t samples = 0, hits = 0;
  double confidence_sum = 0.0;
};

// How a batch lies in memory: scores are outer x classes x inner, labels outer x inner.
struct ScoreLayout {
  std::int64_t outer = 0, classes = 0, inner = 1;
};

// Counts what a classifier got right, batch by batch. The answer is the class with the highest
// score; of equal ones a wrong one, as in Caffe's Accuracy. A sample is in the top k if fewer than
// k other classes score as high as its own.
class Evaluation {
 public:
  static constexpr int kConfidenceBins = 1000;

  struct Options {
    std::int64_t classes = 0;
    std::vector<int> top_k;          // each from 1 to `classes`, ascending
    std::optional<int> ignored;      // a label whose samples do not count
    bool has_probabilities = false;  // false: scores become some by a softmax
  };
  // Requires: options as said there.
  explicit Evaluation(Options options);

  // Requires: spans as long as the layout says, with as many classes as the options. Errors: kData
  // for a label that is no class; kNotFinite for scores that are not finite. Then nothing of the
  // batch from that sample on counts.
  Result<void> add(std::span<const float> scores, std::span<const float> labels,
                   const ScoreLayout& layout);

  std::int64_t samples() const { return samples_; }
  std::int64_t ignored_samples() const { return ignored_; }
  const std::vector<ClassScores>& classes() const { return classes_; }
  const Options& options() const { return options_; }
  // Of the top k of options().top_k; of all samples. Nothing without samples.
  std::optional<double> top_k_share(std::size_t index) const;
  std::optional<double> accuracy() const;
  // Means over the classes with samples, each as much as another; a precision that is nothing
  // counts as 0.
  double mean_precision() const;
  double mean_recall() const;
  double mean_f1() const;
  double weighted_f1() const;  // by the classes' samples

  using Confusions = std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t>;
  const Confusions& confusions() const { return confusions_; }  // (true, answered), hits included

  // By the probability of the answer, kConfidenceBins of equal width.
  const std::vector<ConfidenceBin>& confidence() const { return confidence_; }
  // The same in fewer bins, whose number divides kConfidenceBins.
  std::vector<ConfidenceBin> confidence_in(int bins) const;
  // Mean distance of confidence and share of hits, over samples, in ten bins.
  double calibration_error() const;

 private:
  Result<void> add_sample(std::int64_t label);
  double mean_over_classes(std::optional<double> (ClassScores::*share)() const) const;

  const Options options_;
  std::vector<double> row_;  // scores of one sample
  std::int64_t samples_ = 0, ignored_ = 0, hits_ = 0;
  std::vector<std::int64_t> top_k_hits_;
  std::vector<ClassScores> classes_;
  std::vector<ConfidenceBin> confidence_;
  Confusions confusions_;
};

}  // namespace speedo
