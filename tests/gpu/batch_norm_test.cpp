// Batch normalization in every layout: kernels on the host against the reference.

#include "gpu/norm/batch_norm.hpp"

#include "gpu/agreement.hpp"
#include "support/catch.hpp"
#include "support/reference/relu_edge.hpp"

namespace speedo::gpu {
namespace {

std::vector<BatchNormShape> norm_shapes() {
  const auto make = [](std::int64_t batch, std::int64_t channels, std::int64_t spatial) {
    BatchNormShape shape;
    shape.batch = batch, shape.channels = channels, shape.spatial = spatial;
    return shape;
  };
  return {make(3, 7, 36),  make(1, 16, 129), make(4, 20, 49), make(64, 10, 1),
          make(2, 37, 17), make(2, 3, 3000), make(5, 40, 60), make(3, 4, 7),
          make(2, 8, 12),  make(2, 64, 9),   make(3, 6, 10)};
}

// The operation of one of both sides.
std::unique_ptr<BatchNorm> made(Trial& trial, const BatchNormShape& shape) {
  std::unique_ptr<BatchNorm> norm;
  trial.run([&](Backend& backend) { norm = backend.make_batch_norm(shape).value(); },
            [&](Queue& queue) { norm = make_batch_norm(queue, trial.device(), shape); });
  return norm;
}

// What a normalization is given.
struct Drawn {
  Drawn(const BatchNormShape& shape, bool is_scaled) {
    const ArrayShape array{shape.batch, shape.channels, shape.spatial};
    const std::int64_t channels = shape.channels;
    x = drawn(array, -1, 5, 1), grad = drawn(array, -1, 1, 2);
    gamma = drawn(channels, -2, 2, 5), beta = drawn(channels, -1, 1, 6);
    mean = drawn(channels, -1, 1, 7), variance = drawn(channels, 0.5F, 3, 8);
    test::clear_at_relu_edge(shape,
                             {x.data(), is_scaled ? gamma.data() : nullptr,
                              is_scaled ? beta.data() : nullptr, mean.data(), variance.data()},
                             grad);
  }
  std::vector<float> x, grad, gamma, beta, mean, variance;
};

TEST_CASE("batch normalization agrees with the reference in every layout") {
  BatchNormShape shape = GENERATE(from_range(norm_shapes()));
  shape.layout = GENERATE_COPY(from_range(stored_layouts(shape.channels)));
  shape.is_fixed = GENERATE(false, true);
  const int relu = GENERATE(0, 1, 2);
  if (relu > 0) shape.activation = UnaryOp{UnaryKind::kRelu, relu == 1 ? 0.0F : 0.125F};
  const bool scaled = GENERATE(true, false);
  shape.adds = GENERATE(true, false);
  if (shape.adds && !scaled) return;
  const ArrayShape array{shape.batch, shape.channels, shape.spatial};
  CAPTURE(shape.batch, shape.channels, shape.spatial, shape.layout.block, shape.is_fixed, relu,
          scaled, shape.adds);
  const Drawn given(shape, scaled);
  require_agreement(1e-11, [&](Trial& trial) {
    const auto norm = made(trial, shape);
    const std::int64_t channels = shape.channels;
    const float* x = trial.put_array(array, shape.layout, given.x);
    const float* gamma = scaled ? trial.put(given.gamma) : nullptr;
    const float* beta = scaled ? trial.put(given.beta) : nullptr;
    float* mean = shape.is_fixed ? trial.put(given.mean) : trial.blank(channels);
    float* variance = shape.is_fixed ? trial.put(given.variance) : trial.blank(channels);
    const bool is_onto = shape.adds && relu != 1;  // the sum goes where the addend is
    float* y = is_onto ? trial.put_array(array, shape.layout, drawn(array, -2, 2, 12))
                       : trial.blank_array(array, shape.layout);
    if (is_onto) norm->add_next(y);
    if (shape.adds && !is_onto) {
      norm->add_next(trial.put_array(array, shape.layout, drawn(array, -2, 2, 12)));
    }
    if (shape.is_fixed) {
      norm->forward_fixed(x, mean, variance, gamma, beta, y);
    } else {
      norm->forward(x, gamma, beta, mean, variance, y);
    }
    // In place, and on top of what is there.
    float* grad = trial.put_array(array, shape.layout, given.grad);
    float* gamma_grad = trial.put(drawn(channels, -1, 1, 9));
    float* beta_grad = trial.put(drawn(channels, -1, 1, 10));
    norm->backward({x, y, grad, mean, variance, gamma, grad, gamma_grad, beta_grad});
    auto values =
        joined(trial.get_array(array, shape.layout, y), trial.get_array(array, shape.layout, grad));
    values = joined(values, joined(trial.get(mean, channels), trial.get(variance, channels)));
    return joined(values, joined(trial.get(gamma_grad, channels), trial.get(beta_grad, channels)));
  });
}

TEST_CASE("batch normalization is done in place, without gradients of its parameters") {
  BatchNormShape shape;
  shape.batch = 3, shape.channels = 5, shape.spatial = 14;
  shape.layout = GENERATE(Layout{1}, Layout{8}, Layout{5});
  shape.is_fixed = GENERATE(false, true);
  if (shape.is_fixed) shape.activation = UnaryOp{UnaryKind::kRelu};
  shape.trains = shape.is_fixed;
  shape.trains_gamma = false;
  const ArrayShape array{3, 5, 14};
  CHECK(batch_norm_reads(shape) == BackwardReads{.src = !shape.is_fixed, .dst = shape.is_fixed});
  require_agreement(1e-11, [&](Trial& trial) {
    const auto norm = made(trial, shape);
    const float* x = trial.put_array(array, shape.layout, drawn(array));
    float* y = trial.put_array(array, shape.layout, drawn(array));
    float* mean = trial.put(drawn(5));
    float* variance = trial.put(drawn(5, 1, 2));
    if (shape.is_fixed) {
      norm->forward_fixed(y, mean, variance, nullptr, nullptr, y);
    } else {
      norm->forward(y, nullptr, nullptr, mean, variance, y);
    }
    float* grad = trial.put_array(array, shape.layout, drawn(array, -1, 1, 3));
    norm->backward({shape.is_fixed ? nullptr : x, shape.is_fixed ? y : nullptr, grad, mean,
                    variance, nullptr, grad, nullptr, nullptr});
    return joined(trial.get_array(array, shape.layout, y),
                  trial.get_array(array, shape.layout, grad));
  });
}

TEST_CASE("batch normalization by statistics that are not aligned where the array is") {
  BatchNormShape shape;
  shape.batch = 2, shape.channels = 8, shape.spatial = 12;
  shape.layout = GENERATE(Layout{1}, Layout{4}, Layout{8});
  shape.is_fixed = GENERATE(false, true);
  shape.activation = UnaryOp{UnaryKind::kRelu};
  const ArrayShape array{2, 8, 12};
  CAPTURE(shape.layout.block, shape.is_fixed);
  require_agreement(1e-11, [&](Trial& trial) {
    const auto norm = made(trial, shape);
    const float* x = trial.put_array(array, shape.layout, drawn(array));
    float* y = trial.blank_array(array, shape.layout);
    float* mean = trial.put(drawn(9)) + 1;
    float* variance = trial.put(drawn(9, 1, 2)) + 1;
    if (shape.is_fixed) {
      norm->forward_fixed(x, mean, variance, nullptr, nullptr, y);
    } else {
      norm->forward(x, nullptr, nullptr, mean, variance, y);
    }
    float* grad = trial.put_array(array, shape.layout, drawn(array, -1, 1, 3));
    norm->backward({x, y, grad, mean, variance, nullptr, grad, nullptr, nullptr});
    return joined(trial.get_array(array, shape.layout, y),
                  trial.get_array(array, shape.layout, grad));
  });
}

TEST_CASE("statistics keep their digits when the mean is far from zero") {
  BatchNormShape shape = GENERATE(from_range(norm_shapes()));
  shape.layout = GENERATE_COPY(from_range(stored_layouts(shape.channels)));
  CAPTURE(shape.batch, shape.channels, shape.spatial, shape.layout.block);
  const ArrayShape array{shape.batch, shape.channels, shape.spatial};
  require_agreement(1e-12, [&](Trial& trial) {
    const auto norm = made(trial, shape);
    float* mean = trial.blank(shape.channels);
    float* variance = trial.blank(shape.channels);
    norm->forward(trial.put_array(array, shape.layout, drawn(array, 999, 1001)), nullptr, nullptr,
                  mean, variance, trial.blank_array(array, shape.layout));
    return trial.get(variance, shape.channels);
  });
}

}  // namespace
}  // namespace speedo::gpu
