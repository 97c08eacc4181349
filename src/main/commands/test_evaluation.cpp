#include "main/commands/test_evaluation.hpp"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/file.hpp>

#include "base/parse_number.hpp"
#include "base/read_found.hpp"
#include "caffe.pb.h"
#include "cli/kept_inputs.hpp"
#include "core/prototxt.hpp"
#include "tools/class_labels.hpp"
#include "tools/evaluation_report.hpp"

namespace speedo {

namespace {

constexpr int kUsualTopK[] = {1, 5};

Result<std::vector<int>> parse_top_k(const std::string& text) {
  std::vector<int> all;
  for (const std::string& part : split_at_commas(text)) {
    const auto k = parse_number<int>(part);
    if (!k || *k < 1) {
      return usage_error("--top-k takes whole numbers from 1, separated by commas, not '" + text +
                         "'");
    }
    all.push_back(*k);
  }
  std::sort(all.begin(), all.end());
  all.erase(std::unique(all.begin(), all.end()), all.end());
  return all;
}

caffe::NetState test_state(const NetFlags& flags, const caffe::NetParameter& net) {
  caffe::NetState state = net.state();
  state.set_phase(caffe::TEST);
  state.set_level(flags.level);
  for (const std::string& stage : split_at_commas(flags.stage)) state.add_stage(stage);
  return state;
}

}  // namespace

bool EvaluationFlags::is_wanted() const {
  return !top_k.empty() || !labels.empty() || !report_json.empty() || !report_html.empty() ||
         !scores.empty();
}

EvaluationFlags evaluation_flags(const OptionValues& values) {
  EvaluationFlags flags;
  values.get("top-k", flags.top_k);
  values.get("labels", flags.labels);
  values.get("report-json", flags.report_json);
  values.get("report-html", flags.report_html);
  values.get("scores", flags.scores);
  return flags;
}

TestEvaluation::TestEvaluation(EvaluationFlags flags, NetFlags net, ScoredBlobs blobs)
    : flags_(std::move(flags)), net_(std::move(net)), blobs_(std::move(blobs)) {}

Result<std::unique_ptr<TestEvaluation>> TestEvaluation::create(const EvaluationFlags& flags,
                                                               const NetFlags& net) {
  if (!flags.is_wanted()) return std::unique_ptr<TestEvaluation>();
  SPEEDO_ASSIGN(std::vector<int> top_k, parse_top_k(flags.top_k));
  for (const std::string& report : {flags.report_json, flags.report_html}) {
    if (report.empty()) continue;
    const std::vector<std::string> inputs = {net.model, net.weights, flags.labels};
    SPEEDO_TRY(check_target(report, inputs, "the report " + report));
    SPEEDO_TRY(check_file_writable(report));
  }
  SPEEDO_ASSIGN(const caffe::NetParameter message, read_found(net.model, {}, read_net_prototxt));
  SPEEDO_ASSIGN(ScoredBlobs blobs,
                find_scored_blobs(message, test_state(net, message), flags.scores));
  std::unique_ptr<TestEvaluation> made(new TestEvaluation(flags, net, std::move(blobs)));
  made->top_k_ = std::move(top_k);
  return made;
}

Result<ScoreLayout> TestEvaluation::layout_in(const Net& net) const {
  const Tensor* scores = net.blob(blobs_.scores);
  const Tensor* labels = net.blob(blobs_.labels);
  if (scores == nullptr || labels == nullptr) {
    return config_error(
        fmt::format("the net has no blob '{}'", scores == nullptr ? blobs_.scores : blobs_.labels));
  }
  const auto axis = scores->shape().canonical_axis(blobs_.axis);
  if (!axis) return config_error("blob '" + blobs_.scores + "': " + axis.error().message);
  const ScoreLayout layout{scores->shape().count(0, *axis), scores->shape()[*axis],
                           scores->shape().count(*axis + 1)};
  if (layout.outer * layout.inner == labels->count()) return layout;
  return config_error(
      fmt::format("blob '{}' is {} and '{}' {}: there must be {} labels, one for each {} along "
                  "axis {} of the scores",
                  blobs_.scores, to_string(scores->shape()), blobs_.labels,
                  to_string(labels->shape()), layout.outer * layout.inner, layout.classes, *axis));
}

Result<void> TestEvaluation::begin(const Net& net) {
  SPEEDO_ASSIGN(const ScoreLayout layout, layout_in(net));
  if (!top_k_.empty() && top_k_.back() > layout.classes) {
    return usage_error(
        fmt::format("--top-k {}: the net has {} classes", flags_.top_k, layout.classes));
  }
  if (top_k_.empty()) {
    std::copy_if(std::begin(kUsualTopK), std::end(kUsualTopK), std::back_inserter(top_k_),
                 [&](int k) { return k <= layout.classes; });
  }
  if (!flags_.labels.empty()) {
    SPEEDO_ASSIGN(labels_, read_class_labels(flags_.labels, layout.classes));
  }
  evaluation_ = std::make_unique<Evaluation>(
      Evaluation::Options{layout.classes, top_k_, blobs_.ignored, blobs_.has_probabilities});
  return {};
}

Result<void> TestEvaluation::add_batch(const Net& net, int batch) {
  SPEEDO_ASSIGN(const ScoreLayout layout, layout_in(net));
  auto added = evaluation_->add(net.blob(blobs_.scores)->values(net.backend()),
                                net.blob(blobs_.labels)->values(net.backend()), layout);
  if (added) return {};
  Error error = std::move(added).error();
  error.message = fmt::format("batch {}, blobs '{}' and '{}': {}", batch, blobs_.scores,
                              blobs_.labels, error.message);
  return error;
}

Result<void> TestEvaluation::finish() const {
  const EvaluationReport report{*evaluation_, net_.model, net_.weights, labels_};
  if (!flags_.report_json.empty()) {
    SPEEDO_TRY(write_file_atomically(flags_.report_json, to_json(report)));
  }
  if (!flags_.report_html.empty()) {
    SPEEDO_TRY(write_file_atomically(flags_.report_html, to_page(report)));
  }
  return {};
}

std::string TestEvaluation::text() const {
  return to_text(EvaluationReport{*evaluation_, net_.model, net_.weights, labels_});
}

}  // namespace speedo
