#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include <speedo/backend/backend.hpp>

#include "gpu/gpu_device.hpp"
#include "gpu/launch/queue.hpp"
#include "support/gpu/recording_driver.hpp"

namespace speedo::gpu {

// How kernels are run on the host.
struct TrialOptions {
  std::int64_t blocks_max = 16384;
  std::int64_t shift = 0;  // floats by which arrays begin behind an aligned place
  bool backwards = false;  // from the last block and thread to the first
};

// A driver that runs kernels on the host, a device and a queue of it.
class KernelRig {
 public:
  explicit KernelRig(const TrialOptions& options);
  ~KernelRig();
  KernelRig(const KernelRig&) = delete;
  KernelRig& operator=(const KernelRig&) = delete;

  std::shared_ptr<test::CallLog> log = std::make_shared<test::CallLog>();
  test::RecordingDriver driver;
  std::unique_ptr<GpuDevice> device;
  StreamHandle stream = nullptr;  // the device's, which it computes on
  std::unique_ptr<Queue> queue;
  int trials = 0;  // that it was used for
};

// One side of a comparison: the reference backend, or a queue whose kernels run on the host. It has
// memory for a test's arrays.
class Trial {
 public:
  // The reference.
  Trial();
  // `rig` outlives it.
  Trial(KernelRig& rig, const TrialOptions& options);
  // Requires that no fault was found with what was queued.
  ~Trial();
  Trial(const Trial&) = delete;
  Trial& operator=(const Trial&) = delete;

  // Calls one of both.
  void run(const std::function<void(Backend&)>& on_reference,
           const std::function<void(Queue&)>& on_queue);
  // Of a queue's side.
  Device& device() { return *rig_->device; }

  float* put(const std::vector<float>& values);
  // NaNs: what is not written, or read though it should not be, shows.
  float* blank(std::int64_t count);
  std::vector<float> get(const float* from, std::int64_t count);
  // A value that a kernel writes.
  template <class Value>
  Value* place() {
    return static_cast<Value*>(take(sizeof(Value)));
  }
  template <class Value>
  Value value(const Value* from) {
    return rig_ == nullptr ? *from : rig_->queue->read<Value>(from);
  }

  // The same of plain values in any layout, rounded where its elements are; the padding that is got
  // is required to be zero.
  float* put_array(const ArrayShape& shape, Layout layout, const std::vector<float>& plain);
  float* blank_array(const ArrayShape& shape, Layout layout);
  std::vector<float> get_array(const ArrayShape& shape, Layout layout, const float* from);
  // Whether an array was put or got whose elements are rounded.
  bool has_rounded() const { return has_rounded_; }

 private:
  void* take(std::size_t bytes);
  float* put_elements(const std::vector<float>& values, ElementType type);

  std::unique_ptr<Backend> reference_;
  KernelRig* rig_ = nullptr;
  std::int64_t shift_ = 0;
  bool has_rounded_ = false;
  std::vector<void*> taken_;
};

// Runs it on the reference, and with kernels: in grids of many blocks, of two and backwards, and of
// two on arrays that are not aligned; requires sum (a - b)^2 <= tolerance sum b^2 over what it
// returns. Tolerance 0: equal. Where arrays were rounded, each value may be the next one.
void require_agreement(double tolerance, const std::function<std::vector<float>(Trial&)>& run);

inline constexpr double kClose = 1e-6;
inline constexpr double kTight = 1e-12;  // rounding of floats

std::vector<float> drawn(std::int64_t count, float low = -1.0F, float high = 1.0F,
                         std::uint64_t seed = 1);
inline std::vector<float> drawn(const ArrayShape& shape, float low = -1.0F, float high = 1.0F,
                                std::uint64_t seed = 1) {
  return drawn(shape.storage_count({}), low, high, seed);
}

// Counts around the sizes of fours, of blocks, and of a grid of two blocks.
std::vector<std::int64_t> odd_counts();
// The layouts that an array of so many channels can have, of floats; and with bfloat16 beside them.
std::vector<Layout> all_layouts(std::int64_t channels);
std::vector<Layout> stored_layouts(std::int64_t channels);

std::vector<float> joined(std::vector<float> first, const std::vector<float>& second);

}  // namespace speedo::gpu
