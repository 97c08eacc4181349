#pragma once

#include <string>
#include <vector>

#include "tools/evaluation.hpp"

namespace speedo {

// An evaluation with what readers want to know beside it.
struct EvaluationReport {
  const Evaluation& evaluation;
  std::string model, weights;
  std::vector<std::string> labels;  // by class; empty: classes have numbers

  std::string label_of(std::int64_t label) const;
};

// Shares, and a line for each class up to kClassLinesMax of them; then the most frequent mistakes.
inline constexpr std::int64_t kClassLinesMax = 50;
std::string to_text(const EvaluationReport& report);

// One object. Shares without samples are null. `confusion` has a row for each true class, with up
// to kConfusionRowsMax classes; with more, `confusions` lists what occurred.
inline constexpr std::int64_t kConfusionRowsMax = 1000;
std::string to_json(const EvaluationReport& report);

// One HTML page that needs no other file: shares, curves, classes, confusion.
std::string to_page(const EvaluationReport& report);

// The `most` frequent mistakes, the most frequent first; of equal ones, by class.
struct Mistake {
  std::int64_t truth = 0, answer = 0, count = 0;
};
std::vector<Mistake> frequent_mistakes(const Evaluation& evaluation, std::size_t most);

}  // namespace speedo
