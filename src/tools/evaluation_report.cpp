#include "tools/evaluation_report.hpp"

#include <algorithm>
#include <cmath>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "base/json_text.hpp"

namespace speedo {

namespace {

constexpr std::size_t kMistakesShown = 10;
constexpr int kCalibrationBins = 10;

std::string share_text(const std::optional<double>& share) {
  return share ? fmt::format("{:.4f}", *share) : "-";
}

nlohmann::json share_json(const std::optional<double>& share) {
  return share ? nlohmann::json(*share) : nlohmann::json(nullptr);
}

nlohmann::json classes_json(const EvaluationReport& report) {
  nlohmann::json classes = nlohmann::json::array();
  std::int64_t number = 0;
  for (const ClassScores& each : report.evaluation.classes()) {
    classes.push_back({{"class", number},
                       {"label", report.label_of(number)},
                       {"samples", each.samples},
                       {"answers", each.answers},
                       {"hits", each.hits},
                       {"precision", share_json(each.precision())},
                       {"recall", share_json(each.recall())},
                       {"f1", share_json(each.f1())}});
    ++number;
  }
  return classes;
}

void add_confusion(const Evaluation& evaluation, nlohmann::json& object) {
  const std::int64_t classes = evaluation.options().classes;
  if (classes > kConfusionRowsMax) {
    nlohmann::json& list = object["confusions"] = nlohmann::json::array();
    for (const auto& [pair, count] : evaluation.confusions()) {
      list.push_back({{"true", pair.first}, {"answered", pair.second}, {"count", count}});
    }
    return;
  }
  const auto size = static_cast<std::size_t>(classes);
  std::vector<std::vector<std::int64_t>> rows(size, std::vector<std::int64_t>(size));
  for (const auto& [pair, count] : evaluation.confusions()) {
    rows[static_cast<std::size_t>(pair.first)][static_cast<std::size_t>(pair.second)] = count;
  }
  object["confusion"] = rows;
}

nlohmann::json calibration_json(const Evaluation& evaluation) {
  nlohmann::json bins = nlohmann::json::array();
  for (const ConfidenceBin& bin : evaluation.confidence_in(kCalibrationBins)) {
    const auto samples = static_cast<double>(bin.samples);
    const bool is_empty = bin.samples == 0;
    bins.push_back(
        {{"samples", bin.samples},
         {"confidence",
          is_empty ? nlohmann::json(nullptr) : nlohmann::json(bin.confidence_sum / samples)},
         {"accuracy", is_empty ? nlohmann::json(nullptr)
                               : nlohmann::json(static_cast<double>(bin.hits) / samples)}});
  }
  return bins;
}

}  // namespace

std::string EvaluationReport::label_of(std::int64_t label) const {
  return labels.empty() ? std::to_string(label) : labels[static_cast<std::size_t>(label)];
}

std::vector<Mistake> frequent_mistakes(const Evaluation& evaluation, std::size_t most) {
  std::vector<Mistake> mistakes;
  for (const auto& [pair, count] : evaluation.confusions()) {
    if (pair.first != pair.second) mistakes.push_back({pair.first, pair.second, count});
  }
  std::stable_sort(mistakes.begin(), mistakes.end(),
                   [](const Mistake& a, const Mistake& b) { return a.count > b.count; });
  mistakes.resize(std::min(mistakes.size(), most));
  return mistakes;
}

std::string to_text(const EvaluationReport& report) {
  const Evaluation& all = report.evaluation;
  std::string text = fmt::format("samples {}", all.samples());
  if (all.ignored_samples() > 0) text += fmt::format(", ignored {}", all.ignored_samples());
  for (std::size_t i = 0; i < all.options().top_k.size(); ++i) {
    text += fmt::format(", top-{} {}", all.options().top_k[i], share_text(all.top_k_share(i)));
  }
  text += fmt::format(
      "\nmean over classes: precision {:.4f}, recall {:.4f}, F1 {:.4f}; weighted F1 {:.4f}; "
      "calibration error {:.4f}\n",
      all.mean_precision(), all.mean_recall(), all.mean_f1(), all.weighted_f1(),
      all.calibration_error());
  if (all.options().classes <= kClassLinesMax) {
    text += fmt::format("{:>10}{:>11}{:>10}{:>10}  {}\n", "samples", "precision", "recall", "F1",
                        "class");
    std::int64_t number = 0;
    for (const ClassScores& each : all.classes()) {
      text +=
          fmt::format("{:>10}{:>11}{:>10}{:>10}  {}\n", each.samples, share_text(each.precision()),
                      share_text(each.recall()), share_text(each.f1()), report.label_of(number++));
    }
  }
  for (const Mistake& mistake : frequent_mistakes(all, kMistakesShown)) {
    text += fmt::format("{:>10} x {} taken for {}\n", mistake.count, report.label_of(mistake.truth),
                        report.label_of(mistake.answer));
  }
  return text;
}

std::string to_json(const EvaluationReport& report) {
  const Evaluation& all = report.evaluation;
  nlohmann::json object = {{"model", report.model},
                           {"weights", report.weights},
                           {"samples", all.samples()},
                           {"ignored", all.ignored_samples()},
                           {"accuracy", share_json(all.accuracy())},
                           {"mean_precision", all.mean_precision()},
                           {"mean_recall", all.mean_recall()},
                           {"mean_f1", all.mean_f1()},
                           {"weighted_f1", all.weighted_f1()},
                           {"calibration_error", all.calibration_error()}};
  nlohmann::json& top = object["top_k"] = nlohmann::json::object();
  for (std::size_t i = 0; i < all.options().top_k.size(); ++i) {
    top[std::to_string(all.options().top_k[i])] = share_json(all.top_k_share(i));
  }
  object["classes"] = classes_json(report);
  object["calibration"] = calibration_json(all);
  add_confusion(all, object);
  return json_text(object, 2) + "\n";
}

}  // namespace speedo
