#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/core/solver.hpp>

#include "base/trace.hpp"
#include "core/net/net_outputs.hpp"

namespace speedo {
namespace {

bool has_loss(const Net& net) {
  for (const std::string& blob : net.blob_names()) {
    if (net.loss_weight(blob) != 0.0F) return true;
  }
  return false;
}

bool made_by_accuracy(const Net& net, const std::string& blob) {
  for (const Net::LayerView& view : net.layers()) {
    for (const std::string& top : view.top_names) {
      if (top == blob && view.layer->type() == "Accuracy") return true;
    }
  }
  return false;
}

float first_accuracy(const Net& net, const std::vector<TestScores::Score>& scores) {
  for (const TestScores::Score& score : scores) {
    if (made_by_accuracy(net, score.name)) return score.value;
  }
  return std::numeric_limits<float>::quiet_NaN();
}

// Sums of the passes so far, in float like Caffe's, so that the digits shown agree.
Result<void> add_scores(std::vector<TestScores::Score>& sums,
                        const std::vector<TestScores::Score>& scores) {
  const auto is_same = [](const TestScores::Score& a, const TestScores::Score& b) {
    return a.name == b.name;
  };
  if (!std::equal(sums.begin(), sums.end(), scores.begin(), scores.end(), is_same)) {
    return Error{
        ErrorCode::kUnsupported,
        "an output of the net has another number of elements in each batch, so that it has "
        "no mean: let a Silence layer read it"};
  }
  for (std::size_t i = 0; i < sums.size(); ++i) sums[i].value += scores[i].value;
  return {};
}

}  // namespace

std::vector<TestScores::Score> read_outputs(const Net& net) {
  std::vector<TestScores::Score> scores;
  for (const std::string& name : net.output_names()) {
    const std::vector<float> values = net.blob(name)->values(net.backend());
    for (const float value : values) scores.push_back({name, value, net.loss_weight(name)});
  }
  return scores;
}

bool has_finite_losses(const TestScores& scores) {
  return std::all_of(scores.scores.begin(), scores.scores.end(), [](const TestScores::Score& each) {
    return each.loss_weight == 0.0F || std::isfinite(each.value);
  });
}

Result<TestScores> run_test(Net& net, int iterations, const std::function<bool()>& stop,
                            const std::function<Result<float>(Net&)>& forward) {
  SPEEDO_ASSERT(iterations >= 0);
  const TraceSpan span("test");
  net.set_batch_span({});
  TestScores result;
  float loss = 0.0F;
  while (result.passes < iterations) {
    if (stop && stop()) break;
    SPEEDO_ASSIGN(const float pass_loss, forward ? forward(net) : net.forward());
    loss += pass_loss;
    std::vector<TestScores::Score> scores = read_outputs(net);
    if (result.passes++ == 0) {
      result.scores = std::move(scores);
    } else {
      SPEEDO_TRY(add_scores(result.scores, scores));
    }
  }
  const auto passes = static_cast<float>(result.passes);
  for (TestScores::Score& score : result.scores) score.value /= passes;
  result.accuracy = first_accuracy(net, result.scores);
  result.has_loss = has_loss(net);
  if (result.passes > 0 && result.has_loss) result.loss = loss / passes;
  return result;
}

}  // namespace speedo
