// Response normalization, recurrent steps and windows: kernels on the host against the reference.

#include <algorithm>
#include <cmath>

#include "gpu/agreement.hpp"
#include "gpu/convolution/im2col.hpp"
#include "gpu/lrn/lrn.hpp"
#include "gpu/recurrent/lstm.hpp"
#include "support/catch.hpp"

namespace speedo::gpu {
namespace {

using Region = LrnShape::Region;

std::vector<LrnShape> lrn_shapes() {
  const auto across = Region::kAcross, within = Region::kWithin;
  return {
      {across, 2, 7, 5, 7, 3, 0.5F, 0.75F, 1.0F, {}},
      {across, 3, 16, 3, 43, 5, 1e-4F, 0.75F, 1.0F, {}},
      {across, 1, 5, 15, 20, 7, 2.0F, 0.5F, 2.0F, {}},
      {across, 2, 3, 8, 8, 9, 1.0F, 1.3F, 0.5F, {}},
      {across, 2, 37, 5, 3, 5, 1.0F, 1.0F, 3.0F, {}},
      {across, 2, 4, 3, 5, 3, 1.0F, 0.75F, 1.0F, {}},
      {across, 3, 4, 2, 7, 5, 2.0F, 0.5F, 1.0F, {}},
      {across, 2, 8, 5, 3, 3, 1.0F, 1.0F, 2.0F, {}},
      {across, 1, 8, 4, 4, 9, 1.0F, 0.75F, 1.0F, {}},
      {across, 5, 12, 9, 7, 5, 1.0F, 1.3F, 0.5F, {}},
      {across, 2, 96, 6, 5, 5, 1e-1F, 0.75F, 1.0F, {}},
      {across, 1, 50, 1, 1, 401, 3.0F, 0.75F, 1e-3F, {}},
      {within, 2, 3, 5, 7, 3, 5e-5F, 0.75F, 1.0F, {}},
      {within, 2, 19, 8, 9, 3, 2.0F, 0.75F, 1.0F, {}},
      {within, 1, 5, 3, 2, 101, 1e3F, 0.5F, 1.0F, {}},
      {within, 1, 2, 40, 33, 3, 1.0F, 0.3F, 1.0F, {}},
  };
}

TEST_CASE("response normalization agrees with the reference in every layout") {
  LrnShape shape = GENERATE(from_range(lrn_shapes()));
  shape.layout = GENERATE_COPY(from_range(stored_layouts(shape.channels)));
  const ArrayShape array{shape.batch, shape.channels, shape.h * shape.w};
  CAPTURE(shape.channels, shape.h, shape.w, shape.size, shape.beta, shape.layout.block);
  require_agreement(kTight, [&](Trial& trial) {
    const float* src = trial.put_array(array, shape.layout, drawn(array, -3, 3));
    const float* dst_grad = trial.put_array(array, shape.layout, drawn(array, -1, 1, 2));
    float* dst = trial.blank_array(array, shape.layout);
    float* src_grad = trial.blank_array(array, shape.layout);
    trial.run(
        [&](Backend& backend) {
          const auto lrn = backend.make_lrn(shape).value();
          lrn->forward(src, dst);
          lrn->backward(src, dst, dst_grad, src_grad);
        },
        [&](Queue& queue) {
          Workspace workspace(queue.driver, queue.stream);
          const auto lrn = make_lrn(queue, workspace, shape);
          lrn->forward(src, dst);
          lrn->backward(src, nullptr, dst_grad, src_grad);
        });
    return joined(trial.get_array(array, shape.layout, dst),
                  trial.get_array(array, shape.layout, src_grad));
  });
}

// Both passes on a rig, on arrays that begin so many floats behind an aligned place.
std::vector<float> normalized(KernelRig& rig, const LrnShape& shape, std::int64_t shift,
                              const std::vector<float>& values) {
  const ArrayShape array = {shape.batch, shape.channels, shape.h * shape.w};
  Trial trial(rig, {.shift = shift});
  const float* src = trial.put_array(array, shape.layout, values);
  const float* dst_grad = trial.put_array(array, shape.layout, drawn(array, -1, 1, 2));
  float* dst = trial.blank_array(array, shape.layout);
  float* src_grad = trial.blank_array(array, shape.layout);
  Workspace workspace(rig.driver, rig.stream);
  const auto lrn = make_lrn(*rig.queue, workspace, shape);
  lrn->forward(src, dst);
  lrn->backward(src, nullptr, dst_grad, src_grad);
  rig.driver.synchronize(rig.stream);
  return joined(trial.get_array(array, shape.layout, dst),
                trial.get_array(array, shape.layout, src_grad));
}

TEST_CASE("normalization of four channels at once gives the bits of one at a time") {
  const std::int64_t channels = GENERATE(4, 8, 12, 96);
  const std::int64_t size = GENERATE(1, 3, 5, 9);
  const bool backwards = GENERATE(false, true);
  KernelRig rig({.backwards = backwards});
  if (backwards) rig.queue->blocks_max = 2;
  for (const float beta : {0.75F, 0.5F, 1.0F, 1.3F}) {
    for (const float k : {0.0F, 2.0F}) {
      const LrnShape shape{Region::kAcross, 3, channels, 5, 7, size, 1.0F, beta, k,
                           Layout{channels}};
      CAPTURE(channels, size, backwards, beta, k);
      auto src = drawn({shape.batch, channels, 35}, -3, 3);
      // What spoils all windows that it is in, and no others: channels of the second sample where
      // scales of 0 are, one infinite value of the first.
      std::fill_n(src.begin() + 35 * channels, 35 * channels / 2, 0.0F);
      src[static_cast<std::size_t>(35 * (channels - 1) + 17)] = HUGE_VALF;
      const std::vector<float> at_once = normalized(rig, shape, 0, src);
      const std::vector<float> one_by_one = normalized(rig, shape, 1, src);
      CHECK(
          std::equal(at_once.begin(), at_once.end(), one_by_one.begin(), one_by_one.end(),
                     [](float a, float b) { return a == b || (std::isnan(a) && std::isnan(b)); }));
      const bool has_nan =
          std::any_of(one_by_one.begin(), one_by_one.end(), [](float a) { return std::isnan(a); });
      CHECK(has_nan);
    }
  }
  const auto launched = [&](const char* name) {
    const auto& history = rig.driver.history();
    return std::count(history.begin(), history.end(), name);
  };
  const std::ptrdiff_t at_once = size == 3 || size == 5 ? 8 : 0;
  CHECK(launched("lrn_fours_forward") == at_once);
  CHECK(launched("lrn_fours_backward") == at_once);
  CHECK(launched("lrn_forward") == 16 - at_once);
  CHECK(launched("lrn_ratios") == 16 - at_once);
}

TEST_CASE("steps of long short-term memory agree with the reference") {
  const LstmShape shape =
      GENERATE(LstmShape{1, 1}, LstmShape{3, 7}, LstmShape{5, 256}, LstmShape{0, 4});
  const bool in_place = GENERATE(false, true);
  CAPTURE(shape.streams, shape.cells, in_place);
  const std::int64_t cells = shape.streams * shape.cells;
  require_agreement(kTight, [&](Trial& trial) {
    auto cont = drawn(shape.streams, 0.5F, 1.0F, 1);
    if (!cont.empty()) cont[0] = 0.0F;
    float* sums = trial.put(drawn(4 * cells, -3, 3, 2));
    const LstmForward forward{trial.put(cont),
                              trial.put(drawn(cells, -1, 1, 3)),
                              sums,
                              in_place ? sums : trial.blank(4 * cells),
                              trial.blank(cells),
                              trial.blank(cells)};
    float* c_grad = trial.put(drawn(cells, -1, 1, 4));
    const LstmBackward backward{forward.c_before,
                                forward.gates,
                                forward.c,
                                in_place ? c_grad : nullptr,
                                trial.put(drawn(cells, -1, 1, 5)),
                                c_grad,
                                in_place ? forward.gates : trial.blank(4 * cells)};
    trial.run(
        [&](Backend& backend) {
          backend.lstm_forward(shape, forward);
          backend.lstm_backward(shape, backward);
        },
        [&](Queue& queue) {
          lstm_forward(queue, shape, forward);
          lstm_backward(queue, shape, backward);
        });
    const auto values = joined(trial.get(forward.c, cells), trial.get(forward.h, cells));
    return joined(joined(values, trial.get(c_grad, cells)),
                  trial.get(backward.sums_grad, 4 * cells));
  });
}

struct WindowSample {
  std::vector<std::int64_t> src, kernel, stride, pad, dilation;
};

TEST_CASE("windows are written as matrices, and summed up again") {
  using Sizes = std::vector<std::int64_t>;
  const WindowSample sample = GENERATE(
      values<WindowSample>({{{5, 6}, {3, 2}, {2, 1}, {1, 0}, {1, 2}},
                            {{7}, {3}, {2}, {2}, {1}},
                            {{4, 3, 5}, {2, 1, 3}, {1, 2, 2}, {1, 0, 1}, {1, 1, 1}},
                            {{}, {}, {}, {}, {}},
                            {{20, 20}, {5, 5}, {1, 1}, {2, 2}, {1, 1}},
                            {Sizes(10, 2), Sizes(10, 1), Sizes(10, 1), Sizes(10, 0), Sizes(10, 1)},
                            {{1, 1, 2, 1, 1, 3, 1, 1, 2},
                             {1, 1, 2, 1, 1, 2, 1, 1, 1},
                             Sizes(9, 1),
                             Sizes(9, 0),
                             Sizes(9, 1)}}));
  ConvolutionShape shape;
  shape.batch = 2, shape.channels = shape.outputs = 3;
  shape.src_size = sample.src, shape.kernel = sample.kernel, shape.stride = sample.stride;
  shape.pad = sample.pad, shape.dilation = sample.dilation;
  std::int64_t src_count = 6, matrix_count = 6;
  for (std::size_t i = 0; i < sample.src.size(); ++i) {
    const std::int64_t extent = sample.dilation[i] * (sample.kernel[i] - 1) + 1;
    shape.dst_size.push_back((sample.src[i] + 2 * sample.pad[i] - extent) / sample.stride[i] + 1);
    src_count *= sample.src[i];
    matrix_count *= sample.kernel[i] * shape.dst_size[i];
  }
  CAPTURE(sample.src, sample.kernel);
  require_agreement(kTight, [&](Trial& trial) {
    const float* src = trial.put(drawn(src_count));
    float* matrices = trial.blank(matrix_count);
    const float* others = trial.put(drawn(matrix_count, -1, 1, 2));
    float* sums = trial.blank(src_count);
    trial.run(
        [&](Backend& backend) {
          backend.unfold(shape, src, matrices);
          backend.fold(shape, others, sums);
        },
        [&](Queue& queue) {
          unfold(queue, shape, src, matrices);
          fold(queue, shape, others, sums);
        });
    return joined(trial.get(matrices, matrix_count), trial.get(sums, src_count));
  });
}

}  // namespace
}  // namespace speedo::gpu
