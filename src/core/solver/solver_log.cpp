#include "core/solver/solver_log.hpp"

#include <cmath>
#include <cstddef>

#include "base/log.hpp"

namespace speedo {

void log_progress(const Progress& progress) {
  const float seconds = progress.seconds > 0 ? progress.seconds : 1.0F;
  SPEEDO_INFO("Iteration {} ({:g} iter/s, {:g}s/{} iters), loss = {}", progress.iteration,
              static_cast<float>(progress.iterations_done) / seconds, progress.seconds,
              progress.display, number_text(progress.loss));
}

void log_outputs(std::string_view kind, const std::vector<TestScores::Score>& scores) {
  OutputLines lines;
  lines.show = [&](int index, const TestScores::Score& score) {
    std::string weighted;
    if (score.loss_weight != 0.0F) {
      weighted = fmt::format(" (* {:g} = {} loss)", score.loss_weight,
                             number_text(score.loss_weight * score.value));
    }
    SPEEDO_INFO("    {} net output #{}: {} = {}{}", kind, index, score.name,
                number_text(score.value), weighted);
  };
  lines.leave_out = [&](const std::string& name, int count) {
    SPEEDO_INFO("    {} net output {}: {} more values are left out", kind, name, count);
  };
  for_each_shown(scores, lines);
}

void for_each_shown(const std::vector<TestScores::Score>& scores, const OutputLines& lines) {
  std::size_t begin = 0;  // of the output that `i` is in
  for (std::size_t i = 0; i < scores.size(); ++i) {
    if (scores[i].name != scores[begin].name) begin = i;
    const int before = static_cast<int>(i - begin);
    if (before < kLinesPerOutputMax) lines.show(static_cast<int>(i), scores[i]);
    const bool is_last = i + 1 == scores.size() || scores[i + 1].name != scores[i].name;
    if (is_last && before >= kLinesPerOutputMax) {
      lines.leave_out(scores[i].name, before + 1 - kLinesPerOutputMax);
    }
  }
}

std::string number_text(float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value) && value < 0.0F) return "-1e999";
  return fmt::format("{:g}", value);
}

std::string loss_text(const TestScores& scores) {
  return scores.has_loss ? number_text(scores.loss) : "0";
}

}  // namespace speedo
