#include "core/solver_log.hpp"

#include <string>

#include "base/log.hpp"

namespace speedo {

void log_progress(const Progress& progress) {
  const float seconds = progress.seconds > 0 ? progress.seconds : 1.0F;
  SPEEDO_INFO("Iteration {} ({:g} iter/s, {:g}s/{} iters), loss = {:g}", progress.iteration,
              static_cast<float>(progress.iterations_done) / seconds, progress.seconds,
              progress.display, progress.loss);
}

void log_outputs(std::string_view kind, const std::vector<TestScores::Score>& scores) {
  int index = 0;
  for (const TestScores::Score& score : scores) {
    std::string weighted;
    if (score.loss_weight != 0.0F) {
      weighted = fmt::format(" (* {:g} = {:g} loss)", score.loss_weight,
                             score.loss_weight * score.value);
    }
    SPEEDO_INFO("    {} net output #{}: {} = {:g}{}", kind, index++, score.name, score.value,
                weighted);
  }
}

}  // namespace speedo
