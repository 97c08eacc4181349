#pragma once

#include <memory>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/net.hpp>

#include "cli/net_inputs.hpp"
#include "cli/options/option_values.hpp"
#include "tools/evaluation.hpp"
#include "tools/scored_blobs.hpp"

namespace speedo {

// What `speedo test` finds out about a classifier beside the net's own outputs.
struct EvaluationFlags {
  std::string top_k, labels, report_json, report_html, scores;

  bool is_wanted() const;
};
EvaluationFlags evaluation_flags(const OptionValues& values);

class TestEvaluation {
 public:
  // What the flags ask for of the net in phase TEST; null if they ask for nothing. Errors: kUsage;
  // kCannotWrite for a report's folder; those of find_scored_blobs().
  static Result<std::unique_ptr<TestEvaluation>> create(const EvaluationFlags& flags,
                                                        const NetFlags& net);

  // Blobs that the net must keep for add_batch().
  std::vector<std::string> kept_blobs() const { return {blobs_.scores, blobs_.labels}; }
  // Before the first batch, once the net is there. Errors: kConfig for blobs that are no scores and
  // labels; kUsage for a k beyond the classes; those of read_class_labels().
  Result<void> begin(const Net& net);
  // After a forward pass. Errors: those of Evaluation::add(), of that batch.
  Result<void> add_batch(const Net& net, int batch);
  // Writes the reports. Error: kCannotWrite.
  Result<void> finish() const;
  // As text for people.
  std::string text() const;

 private:
  TestEvaluation(EvaluationFlags flags, NetFlags net, ScoredBlobs blobs);
  Result<ScoreLayout> layout_in(const Net& net) const;

  const EvaluationFlags flags_;
  const NetFlags net_;
  const ScoredBlobs blobs_;
  std::vector<int> top_k_;
  std::vector<std::string> labels_;
  std::unique_ptr<Evaluation> evaluation_;
};

}  // namespace speedo
