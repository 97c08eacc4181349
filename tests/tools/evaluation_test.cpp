#include "tools/evaluation.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <nlohmann/json.hpp>

#include <speedo/base/random.hpp>

#include "support/catch.hpp"
#include "tools/evaluation_report.hpp"

namespace speedo {
namespace {

// Random answers of a classifier that is often right; some classes have no samples.
struct Answers {
  std::int64_t outer = 40, classes = 7, inner = 3;
  std::vector<float> scores, labels;

  explicit Answers(std::uint64_t seed) {
    Random random = Random::derive(seed, {1});
    labels.resize(static_cast<std::size_t>(outer * inner));
    for (float& label : labels) label = static_cast<float>(random.below(5));
    scores.resize(labels.size() * static_cast<std::size_t>(classes));
    for (std::size_t i = 0; i < scores.size(); ++i) {
      // Quarters, so that ties occur.
      scores[i] = static_cast<float>(random.below(12)) * 0.25F;
    }
    for (std::size_t i = 0; i < labels.size(); ++i) {
      if (random.below(2) == 0) score(i, static_cast<std::int64_t>(labels[i])) += 2.0F;
    }
  }

  // Of sample (row, column): row * inner + column.
  float& score(std::size_t sample, std::int64_t label) {
    const auto row = static_cast<std::int64_t>(sample) / inner;
    const auto column = static_cast<std::int64_t>(sample) % inner;
    return scores[static_cast<std::size_t>((row * classes + label) * inner + column)];
  }
  // Classes from the best to the worst; among equal ones the true one last.
  std::vector<std::int64_t> ranking(std::size_t sample) {
    std::vector<std::int64_t> order;
    for (std::int64_t k = 0; k < classes; ++k) order.push_back(k);
    const auto truth = static_cast<std::int64_t>(labels[sample]);
    std::stable_sort(order.begin(), order.end(), [&](std::int64_t a, std::int64_t b) {
      const float x = score(sample, a), y = score(sample, b);
      return x != y ? x > y : a != truth && b == truth;
    });
    return order;
  }
};

TEST_CASE("shares, confusion and classes are those that plain loops count") {
  const std::uint64_t seed = 20260101;
  Answers answers(seed);
  Evaluation evaluation({answers.classes, {1, 2, 5}, {}, false});
  REQUIRE(evaluation.add(answers.scores, answers.labels,
                         {answers.outer, answers.classes, answers.inner}));
  const auto samples = answers.labels.size();
  CHECK(evaluation.samples() == static_cast<std::int64_t>(samples));

  std::vector<std::vector<int>> matrix(7, std::vector<int>(7));
  int in_top[3] = {0, 0, 0};
  double error = 0.0;
  std::vector<double> confidence(10), right(10);
  for (std::size_t i = 0; i < samples; ++i) {
    const auto order = answers.ranking(i);
    const auto truth = static_cast<std::size_t>(answers.labels[i]);
    const auto place = static_cast<std::size_t>(
        std::find(order.begin(), order.end(), static_cast<std::int64_t>(truth)) - order.begin());
    in_top[0] += place < 1 ? 1 : 0;
    in_top[1] += place < 2 ? 1 : 0;
    in_top[2] += place < 5 ? 1 : 0;
    ++matrix[truth][static_cast<std::size_t>(order[0])];
    double sum = 0.0;
    for (std::int64_t k = 0; k < 7; ++k) {
      sum += std::exp(static_cast<double>(answers.score(i, k)));
    }
    const double probability = std::exp(static_cast<double>(answers.score(i, order[0]))) / sum;
    const auto bin = static_cast<std::size_t>(probability * 10.0);
    confidence[bin] += probability;
    right[bin] += place == 0 ? 1.0 : 0.0;
  }
  for (std::size_t i = 0; i < 10; ++i) error += std::abs(confidence[i] - right[i]);
  for (std::size_t k = 0; k < 3; ++k) {
    CHECK(evaluation.top_k_share(k) == Approx(in_top[k] / static_cast<double>(samples)));
  }
  CHECK(evaluation.accuracy() == evaluation.top_k_share(0));
  CHECK(evaluation.calibration_error() == Approx(error / static_cast<double>(samples)));

  double f1_sum = 0.0, weighted = 0.0, precision_sum = 0.0, recall_sum = 0.0;
  for (std::size_t k = 0; k < 7; ++k) {
    int row = 0, column = 0;
    for (std::size_t j = 0; j < 7; ++j) {
      row += matrix[k][j];
      column += matrix[j][k];
      const auto entry = evaluation.confusions().find(
          {static_cast<std::int64_t>(k), static_cast<std::int64_t>(j)});
      CHECK((entry == evaluation.confusions().end() ? 0 : entry->second) == matrix[k][j]);
    }
    const ClassScores& scores = evaluation.classes()[k];
    CHECK(scores.samples == row);
    CHECK(scores.answers == column);
    CHECK(scores.recall().has_value() == (row > 0));
    CHECK(scores.precision().has_value() == (column > 0));
    if (row == 0) continue;
    const double recall = matrix[k][k] / static_cast<double>(row);
    const double precision = column == 0 ? 0.0 : matrix[k][k] / static_cast<double>(column);
    const double f1 =
        precision + recall == 0.0 ? 0.0 : 2.0 * precision * recall / (precision + recall);
    CHECK(scores.recall() == Approx(recall));
    CHECK(*scores.f1() == Approx(f1));
    precision_sum += precision;
    recall_sum += recall;
    f1_sum += f1;
    weighted += f1 * row;
  }
  CHECK(evaluation.classes()[6].samples == 0);
  CHECK(evaluation.mean_precision() == Approx(precision_sum / 5.0));
  CHECK(evaluation.mean_recall() == Approx(recall_sum / 5.0));
  CHECK(evaluation.mean_f1() == Approx(f1_sum / 5.0));
  CHECK(evaluation.weighted_f1() == Approx(weighted / static_cast<double>(samples)));
}

TEST_CASE("ignored labels do not count; labels and scores that are none are refused") {
  Evaluation evaluation({2, {1}, 255, true});
  const float inf = std::numeric_limits<float>::infinity();
  REQUIRE(evaluation.add(std::vector<float>{0.9F, 0.1F, 0.3F, 0.7F}, std::vector<float>{255, 1},
                         {2, 2, 1}));
  CHECK(evaluation.samples() == 1);
  CHECK(evaluation.ignored_samples() == 1);
  CHECK(evaluation.confidence_in(10)[7].samples + evaluation.confidence_in(10)[6].samples == 1);
  const auto label =
      evaluation.add(std::vector<float>{0.9F, 0.1F}, std::vector<float>{2}, {1, 2, 1});
  REQUIRE_FALSE(label);
  CHECK(label.error().code == ErrorCode::kData);
  const auto score =
      evaluation.add(std::vector<float>{inf, 0.1F}, std::vector<float>{1}, {1, 2, 1});
  REQUIRE_FALSE(score);
  CHECK(score.error().code == ErrorCode::kNotFinite);
}

TEST_CASE("the reports hold any labels, also without samples") {
  const Evaluation none({3, {1}, {}, false});
  const EvaluationReport empty{none, "net", "weights", {"a", "<b>", "c\xff"}};
  const auto object = nlohmann::json::parse(to_json(empty));
  CHECK(object["accuracy"].is_null());
  CHECK(object["classes"][1]["label"] == "<b>");
  CHECK(object["confusion"].size() == 3);
  CHECK(to_page(empty).find("&lt;b&gt;") != std::string::npos);
  CHECK(to_text(empty).starts_with("samples 0, top-1 -"));

  Evaluation many({2000, {1}, {}, true});
  std::vector<float> scores(2000, 0.0F);
  scores[1234] = 0.75F;
  REQUIRE(many.add(scores, std::vector<float>{7}, {1, 2000, 1}));
  const EvaluationReport large{many, "net", "weights", {}};
  CHECK(nlohmann::json::parse(to_json(large))["confusions"][0] ==
        nlohmann::json{{"true", 7}, {"answered", 1234}, {"count", 1}});
  CHECK(to_text(large).find("1 x 7 taken for 1234") != std::string::npos);
  CHECK(to_page(large).size() < 100000);
}

}  // namespace
}  // namespace speedo
