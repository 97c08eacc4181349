#include "gpu/steps/device_steps.hpp"

#include <algorithm>
#include <utility>

#include <speedo/backend/reduce_op.hpp>
#include <speedo/base/assert.hpp>

#include "gpu/elementwise/elementwise.hpp"
#include "gpu/softmax/losses.hpp"
#include "gpu/steps/step_kernels.hpp"

namespace speedo::gpu {
namespace {

class GpuDeviceSteps final : public DeviceSteps {
 public:
  GpuDeviceSteps(Queue& queue, GpuDevice& device, StepRecorder& recorder, bool can_record,
                 Buffer memory)
      : queue_(queue),
        device_(device),
        recorder_(recorder),
        can_record_(can_record),
        memory_(std::move(memory)) {
    clear_steps(queue_, state());
  }

  const float* guard() const override { return &state()->rate; }
  void set_rate(float rate) override { gpu::set_rate(queue_, rate, state()); }
  void keep(std::span<const Kept> arrays) override {
    keep_unless_halted(queue_, state(), arrays);
  }
  void add_terms(std::span<const Term> terms) override { gpu::add_terms(queue_, terms, state()); }
  void next_pass() override { gpu::next_pass(queue_, state()); }
  void end_step(std::int64_t n, const float* gradients, int passes) override {
    reduce(queue_, ReduceOp::kAllFinite, n, gradients, nullptr, &state()->is_finite);
    note_step(queue_, passes, state());
  }
  std::vector<float> read() override {
    const auto seen = queue_.read<StepState>(state());
    clear_steps(queue_, state());
    const auto count = std::clamp<std::int64_t>(seen.noted, 0, kStepsMax);
    return {seen.losses, seen.losses + count};
  }

  void softmax_loss(const Rows& rows, const Labelled& on, const QueuedLoss& loss) override {
    gpu::softmax_loss(queue_, shape_of(rows), on.scores, {on.labels, on.ignored}, sums_of(loss));
    mean_of_sums(loss);
  }
  void softmax_loss_backward(const Rows& rows, const Labelled& on, const QueuedLoss& loss,
                             float* grad) override {
    gpu::softmax_loss_backward(queue_, shape_of(rows), on.scores, {on.labels, on.ignored},
                               scale_of(loss), grad);
  }
  void sigmoid_loss(std::int64_t n, const Labelled& on, const QueuedLoss& loss) override {
    gpu::sigmoid_loss(queue_, n, on.scores, {on.labels, on.ignored}, sums_of(loss));
    mean_of_sums(loss);
  }
  void sigmoid_loss_backward(std::int64_t n, const Labelled& on, const QueuedLoss& loss,
                             float* grad) override {
    gpu::sigmoid_loss_backward(queue_, n, on.scores, {on.labels, on.ignored}, scale_of(loss), grad);
  }
  void square_loss(std::int64_t n, const float* difference, const QueuedLoss& loss) override {
    SPEEDO_ASSERT(loss.normalizer.has_value());
    auto* const sum = reinterpret_cast<double*>(loss.sums);
    reduce(queue_, ReduceOp::kSquareSum, n, difference, nullptr, sum);
    divide(queue_, sum, *loss.normalizer, loss.value);
  }
  void square_loss_backward(std::int64_t n, const float* difference, const SquareGradient& of,
                            float* grad) override {
    gpu::square_gradient(queue_, n, difference, of, grad);
  }

  bool can_record() const override { return can_record_; }
  void begin_recording() override {
    returned_ = device_.returned();
    recorder_.begin(queue_.stream);
  }
  Recorded end_recording() override { return recorder_.end(); }
  std::vector<std::uint64_t> recorded_numbers() const override { return recorder_.numbers(); }
  bool replay(std::span<const std::uint64_t> numbers) override {
    if (device_.returned() != returned_) return false;
    return recorder_.replay(numbers);
  }

 private:
  StepState* state() const { return static_cast<StepState*>(const_cast<void*>(memory_.data())); }
  static Backend::SoftmaxShape shape_of(const Rows& rows) {
    return {rows.outer, rows.classes, rows.inner};
  }
  static LossSums* sums_of(const QueuedLoss& loss) {
    static_assert(sizeof(LossSums) <= QueuedLoss::kSumsFloats * sizeof(float));
    return reinterpret_cast<LossSums*>(loss.sums);
  }
  static LossScale scale_of(const QueuedLoss& loss) {
    return {.weight = loss.weight,
            .sums = sums_of(loss),
            .normalizer = loss.normalizer.value_or(0.0)};
  }
  void mean_of_sums(const QueuedLoss& loss) {
    mean_loss(queue_, sums_of(loss), loss.normalizer.value_or(0.0), loss.value);
  }

  Queue& queue_;
  GpuDevice& device_;
  StepRecorder& recorder_;
  const bool can_record_;
  Buffer memory_;
  std::uint64_t returned_ = 0;  // buffers of the device, when it was recorded
};

}  // namespace

Result<std::unique_ptr<DeviceSteps>> make_device_steps(Queue& queue, GpuDevice& device,
                                                       StepRecorder& recorder,
                                                       bool can_record) {
  static_assert(sizeof(StepState) <= Queue::kReadBytes);
  SPEEDO_ASSIGN(Buffer memory, device.allocate(sizeof(StepState)));
  return std::unique_ptr<DeviceSteps>(
      std::make_unique<GpuDeviceSteps>(queue, device, recorder, can_record, std::move(memory)));
}

}  // namespace speedo::gpu
