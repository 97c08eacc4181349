#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include <speedo/base/random.hpp>

#include "sim/fault_ledger.hpp"
#include "sim/process_platform.hpp"
#include "sim/proof/quadratic.hpp"
#include "train/trainer/learner.hpp"

namespace speedo::sim {

// What a worker's computation is like, and what happens to it; the process' own.
struct ComputeState {
  Instant batch_time{0};     // mean; of a pass
  Instant stalled_until{0};
  FaultMark stall;
  Instant since{0};          // of the pass under way, if computing
  bool computing = false;
  std::uint64_t progress = 0;  // before that pass
  // The next pass gives a loss that is not finite, or the next contribution alone is not.
  enum class Spoilt { kNothing, kLoss, kContribution };
  Spoilt spoilt = Spoilt::kNothing;
  std::function<void()> on_spoilt;  // it has
  // A pass has these weights.
  std::function<void(const std::vector<float>&)> on_weights = {};

  // Grows as long as the computation gets on.
  std::uint64_t progress_at(Instant now) const;
};

// SGD's gradient on the quadratic, in virtual time.
class QuadraticLearner : public Learner {
 public:
  // All outlive it but the backend. Error: kFull.
  struct Parts {
    ProcessPlatform& platform;
    const Quadratic& problem;
    ComputeState& state;
    std::uint64_t seed;
    bool shares_memory;
  };
  static Result<std::unique_ptr<Learner>> create(const Parts& parts,
                                                 std::unique_ptr<Backend> backend);

  const ParameterLayout& layout() const override { return parts_.problem.layout(); }
  Backend& backend() override { return *backend_; }
  Arena& weights() override { return weights_; }
  Arena& gradients() override { return gradients_; }
  bool can_read_weights_elsewhere() const override { return true; }
  void read_weights_from(const float* place) override { place_ = place; }
  const float* weights_read() override { return place_ != nullptr ? place_ : weights_.data(); }
  void set_batch_span(const BatchSpan& span) override;
  Result<float> accumulate_gradients(int passes, const Hooks& hooks) override;
  std::uint64_t batch_size() const override { return 1; }
  std::chrono::nanoseconds data_waited() const override { return {}; }
  std::chrono::nanoseconds gone_forward() const override { return {}; }
  void keep_statistics() override {}
  void put_statistics_change_into_gradients() override {}

 private:
  QuadraticLearner(const Parts& parts, std::unique_ptr<Backend> backend)
      : parts_(parts), backend_(std::move(backend)), random_(parts.seed) {}
  void take_time(int passes, double part);
  void report(const Hooks& hooks, int passes);
  void read_again(const Bucket& bucket);
  bool is_spoilt(ComputeState::Spoilt how);
  void spoil_last_element();

  const Parts parts_;
  const std::unique_ptr<Backend> backend_;
  Random random_;
  Arena weights_, gradients_;
  const float* place_ = nullptr;  // of the weights; null: their arena
  std::vector<float> forward_weights_;
  std::uint64_t next_batch_ = 0, span_batches_ = 1;
};

}  // namespace speedo::sim
