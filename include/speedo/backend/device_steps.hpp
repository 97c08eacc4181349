#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace speedo {

// A loss whose numbers stay on the device. All pointers are the device's.
struct QueuedLoss {
  static constexpr std::int64_t kSumsFloats = 8;
  float* value = nullptr;         // receives the sum by the normalizer; NaN after a bad label
  float* sums = nullptr;          // kSumsFloats, 8-byte aligned, from the loss to its gradient
  const float* weight = nullptr;  // the gradient by the loss, where its own gradient is asked for
  std::optional<double> normalizer = std::nullopt;  // nothing: as many labels as count, at least 1
};

// Steps of a training whose numbers stay on the device: the loss of each, and whether it and the
// gradients are finite. The host reads them once for several steps. After a step that is not finite
// nothing that is guarded changes any more, and no step is noted, until they were read: weights,
// histories and statistics that were kept are as that step found them, and it can be repeated.
//
// A step is: set_rate(), keep() of statistics; for each pass the losses, add_terms() and, between
// two passes, next_pass(); end_step(); updates that have guard(). All of it is queued on the
// device's compute() and only read() waits.
// Thread safety: as the Backend, which outlives it.
class DeviceSteps {
 public:
  static constexpr std::int64_t kStepsMax = 128;  // between two read()s
  virtual ~DeviceSteps() = default;

  // See SgdStep::guard.
  virtual const float* guard() const = 0;
  virtual void set_rate(float rate) = 0;
  // Copies n values of each, guarded.
  struct Kept {
    std::int64_t n = 0;
    const float* from = nullptr;
    float* to = nullptr;
  };
  virtual void keep(std::span<const Kept> arrays) = 0;

  // A pass' loss is the sum of weight x value over the terms, as Net::forward() adds it up: those
  // of one call make a float, and floats are added in double. Requires: at most kTermsMax of them.
  struct Term {
    float weight = 0.0F;
    const float* value = nullptr;
  };
  static constexpr std::size_t kTermsMax = 4;
  virtual void add_terms(std::span<const Term> terms) = 0;
  virtual void next_pass() = 0;
  // The loss of the step is the mean over so many passes, NaN if one of n gradients is not finite.
  virtual void end_step(std::int64_t n, const float* gradients, int passes) = 0;
  // Waits. The losses of the steps since it was called last, up to the first that is not finite.
  virtual std::vector<float> read() = 0;

  // The losses of Backend.
  struct Rows {
    std::int64_t outer, classes, inner;
  };
  struct Labelled {
    const float* scores = nullptr;  // probabilities, or what sigmoid_loss() takes
    const float* labels = nullptr;
    std::optional<int> ignored = std::nullopt;
  };
  virtual void softmax_loss(const Rows& rows, const Labelled& on, const QueuedLoss& loss) = 0;
  virtual void softmax_loss_backward(const Rows& rows, const Labelled& on, const QueuedLoss& loss,
                                     float* grad) = 0;
  virtual void sigmoid_loss(std::int64_t n, const Labelled& on, const QueuedLoss& loss) = 0;
  virtual void sigmoid_loss_backward(std::int64_t n, const Labelled& on, const QueuedLoss& loss,
                                     float* grad) = 0;
  // The sum of the squares of n differences.
  virtual void square_loss(std::int64_t n, const float* difference, const QueuedLoss& loss) = 0;
  // grad = weight by divisor, with that sign, x difference.
  struct SquareGradient {
    const float* weight = nullptr;
    float divisor = 1.0F;
    bool is_negative = false;
  };
  virtual void square_loss_backward(std::int64_t n, const float* difference,
                                    const SquareGradient& of, float* grad) = 0;

  // Recordings. From begin_recording() what the calling thread queues on compute() is not done but
  // recorded, until end_recording(), which has it done. What cannot be recorded (a wait for the
  // device, memory taken or given back, copies from and to the host, events) ends the recording:
  // what it has is done first, and the rest as if there had been none.
  virtual bool can_record() const = 0;
  virtual void begin_recording() = 0;
  struct Recorded {
    std::string obstacle;  // what stood against it; empty: it can be replayed
    bool is_done = true;   // what was queued; otherwise nothing of it, to be queued again
  };
  virtual Recorded end_recording() = 0;
  // The random numbers that operations were given in the recording, in their order.
  virtual std::vector<std::uint64_t> recorded_numbers() const = 0;
  // Queues what was recorded, with these numbers in the places of those. False: nothing was queued,
  // as memory went since then that the recording may name, or there is none.
  virtual bool replay(std::span<const std::uint64_t> numbers) = 0;
};

}  // namespace speedo
