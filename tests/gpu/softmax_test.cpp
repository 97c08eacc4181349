// Softmax and losses: kernels on the host against the reference.

#include "gpu/softmax/softmax.hpp"

#include <cmath>

#include "gpu/agreement.hpp"
#include "gpu/softmax/losses.hpp"
#include "support/catch.hpp"

namespace speedo::gpu {
namespace {

using SoftmaxShape = Backend::SoftmaxShape;

std::vector<SoftmaxShape> softmax_shapes() {
  return {{1, 1, 1},   {3, 10, 1},   {65, 17, 1}, {2, 1000, 1}, {1, 5003, 1},
          {300, 3, 1}, {2, 21, 400}, {3, 2, 7},   {1, 1, 600},  {0, 5, 3}};
}

TEST_CASE("softmax agrees with the reference, in place too") {
  const SoftmaxShape shape = GENERATE(from_range(softmax_shapes()));
  CAPTURE(shape.outer, shape.classes, shape.inner);
  const std::int64_t n = shape.outer * shape.classes * shape.inner;
  require_agreement(kTight, [&](Trial& trial) {
    float* x = trial.put(drawn(n, -20, 20));
    const float* y_grad = trial.put(drawn(n, -1, 1, 2));
    float* x_grad = trial.blank(n);
    trial.run(
        [&](Backend& backend) {
          backend.softmax_forward(shape, x, x);
          backend.softmax_backward(shape, x, y_grad, x_grad);
        },
        [&](Queue& queue) {
          softmax_forward(queue, shape, x, x);
          softmax_backward(queue, shape, x, y_grad, x_grad);
        });
    return joined(trial.get(x, n), trial.get(x_grad, n));
  });
}

// Of the classes, cut off: floats that are labels.
std::vector<float> drawn_labels(std::int64_t count, std::int64_t classes) {
  auto labels = drawn(count, 0.0F, static_cast<float>(classes), 3);
  for (std::size_t i = 0; i < labels.size(); i += 2) labels[i] = std::floor(labels[i]);
  return labels;
}

std::vector<float> numbers_of(const Backend::LabelLoss& loss) {
  if (loss.bad_index >= 0) return {static_cast<float>(loss.bad_index), loss.bad_label};
  return {static_cast<float>(loss.sum), static_cast<float>(loss.valid)};
}
std::vector<float> numbers_of(const LossSums& loss) {
  return numbers_of(
      Backend::LabelLoss{loss.sum, loss.valid, loss.bad_index, static_cast<float>(loss.bad_label)});
}

TEST_CASE("softmax losses agree with the reference") {
  const SoftmaxShape shape = GENERATE(from_range(softmax_shapes()));
  const std::optional<int> ignored = GENERATE(std::optional<int>(), std::optional<int>(0));
  CAPTURE(shape.outer, shape.classes, shape.inner, ignored.has_value());
  const std::int64_t n = shape.outer * shape.classes * shape.inner;
  require_agreement(kTight, [&](Trial& trial) {
    auto values = drawn(n, 0, 1);
    for (std::size_t i = 0; i < values.size(); i += 5) values[i] = 0.0F;
    const float* p = trial.put(values);
    const float* labels = trial.put(drawn_labels(shape.outer * shape.inner, shape.classes));
    float* grad = trial.blank(n);
    LossSums* result = trial.place<LossSums>();
    std::vector<float> numbers;
    trial.run(
        [&](Backend& backend) {
          numbers = numbers_of(backend.softmax_loss(shape, p, labels, ignored));
          backend.softmax_loss_backward(shape, p, labels, ignored, 0.25F, grad);
        },
        [&](Queue& queue) {
          softmax_loss(queue, shape, p, {labels, ignored}, result);
          softmax_loss_backward(queue, shape, p, {labels, ignored}, LossScale{0.25F}, grad);
          numbers = numbers_of(queue.read<LossSums>(result));
        });
    return joined(numbers, trial.get(grad, n));
  });
}

TEST_CASE("the first bad label is found, wherever it is") {
  const std::int64_t rows = 3000, classes = 3;
  const float bad = GENERATE(3.0F, -1.0F, 1e30F, -HUGE_VALF, NAN);
  const std::int64_t first = GENERATE(0, 255, 256, 1024, 2999);
  CAPTURE(bad, first);
  auto labels = drawn_labels(rows, classes);
  for (std::int64_t i = first; i < rows; i += 700) labels[static_cast<std::size_t>(i)] = bad;
  require_agreement(0.0, [&](Trial& trial) {
    const float* scores = trial.put(drawn(rows * classes));
    const float* given = trial.put(labels);
    LossSums* result = trial.place<LossSums>();
    std::vector<float> numbers;
    trial.run(
        [&](Backend& backend) {
          // The reference of softmax_loss() does not look at a NaN's label.
          numbers = numbers_of(backend.hinge_loss({rows, classes, false}, scores, given));
          numbers = joined(numbers, numbers);
        },
        [&](Queue& queue) {
          softmax_loss(queue, {rows, classes, 1}, scores, {given, {}}, result);
          numbers = numbers_of(queue.read<LossSums>(result));
          hinge_loss(queue, {rows, classes, false}, scores, given, result);
          numbers = joined(numbers, numbers_of(queue.read<LossSums>(result)));
        });
    return numbers;
  });
}

TEST_CASE("hinge losses agree with the reference") {
  const std::int64_t rows = GENERATE(0, 1, 3, 700), classes = GENERATE(1, 2, 10, 1003);
  const bool squares = GENERATE(false, true);
  const Backend::HingeShape shape{rows, classes, squares};
  CAPTURE(rows, classes, squares);
  if (rows * classes > 100000) return;
  require_agreement(kTight, [&](Trial& trial) {
    const float* scores = trial.put(drawn(rows * classes, -2, 2));
    const float* labels = trial.put(drawn_labels(rows, classes));
    float* grad = trial.blank(rows * classes);
    LossSums* result = trial.place<LossSums>();
    std::vector<float> numbers;
    trial.run(
        [&](Backend& backend) {
          numbers = numbers_of(backend.hinge_loss(shape, scores, labels));
          backend.hinge_loss_backward(shape, scores, labels, 0.5F, grad);
        },
        [&](Queue& queue) {
          hinge_loss(queue, shape, scores, labels, result);
          hinge_loss_backward(queue, shape, scores, labels, 0.5F, grad);
          numbers = numbers_of(queue.read<LossSums>(result));
        });
    return joined(numbers, trial.get(grad, rows * classes));
  });
}

TEST_CASE("losses of sigmoids agree with the reference") {
  const std::int64_t n = GENERATE(from_range(odd_counts()));
  const std::optional<int> ignored = GENERATE(std::optional<int>(), std::optional<int>(-1));
  const float far = GENERATE(3.0F, 300.0F);
  CAPTURE(n, ignored.has_value(), far);
  // The terms are rounded, and may cancel: targets below 0 make some of them negative.
  require_agreement(kClose, [&](Trial& trial) {
    auto targets = drawn(n, 0, 1, 2);
    for (std::size_t i = 0; i < targets.size(); i += 3) targets[i] = -1.5F;
    const float* x = trial.put(drawn(n, -far, far));
    const float* given = trial.put(targets);
    float* grad = trial.blank(n);
    LossSums* result = trial.place<LossSums>();
    std::vector<float> numbers;
    trial.run(
        [&](Backend& backend) {
          const auto loss = backend.sigmoid_loss(n, x, given, ignored);
          numbers = numbers_of(Backend::LabelLoss{loss.sum, loss.valid});
          backend.sigmoid_loss_backward(n, x, given, ignored, 0.5F, grad);
        },
        [&](Queue& queue) {
          sigmoid_loss(queue, n, x, {given, ignored}, result);
          sigmoid_loss_backward(queue, n, x, {given, ignored}, LossScale{0.5F}, grad);
          numbers = numbers_of(queue.read<LossSums>(result));
        });
    return joined(numbers, trial.get(grad, n));
  });
}

}  // namespace
}  // namespace speedo::gpu
