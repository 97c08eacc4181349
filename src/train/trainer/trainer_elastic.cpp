// Elastic averaging: the net's weights are the worker's own, x, from run to run. After the steps
//   e = a (x - W)    of the newest weights W
// is contributed, and x -= w e when the next run begins and says that e was merged, with weight w.
// Until then e lies in the gradient arena, which nobody needs in between: W is read to where the
// last step has used its gradients up, while others are still being computed.
//
// SpeeDO's form contributes x. The master forms e, and the worker reads x - e when it hears that
// its contribution was merged.

#include <bit>
#include <optional>
#include <utility>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>
#include <speedo/train/merge.hpp>

#include "base/log.hpp"
#include "train/trainer/trainer_update.hpp"

namespace speedo {
namespace {

using WorkerParts = WorkerUpdate::Parts;

// Keeps x from run to run; begins it at the master's weights.
class ElasticUpdate : public WorkerUpdate {
 public:
  explicit ElasticUpdate(const WorkerParts& parts) : parts_(parts) {}

  Result<std::uint64_t> begin(const TrainMessage& order) override {
    const Result<void> settled =
        settle(order.merged_run, std::bit_cast<float>(order.merged_weight_bits));
    contributed_.reset();
    SPEEDO_TRY(settled);
    if (!has_weights_) return begin_at_centre(order);
    return order.version;
  }

  Result<void> settle(std::uint64_t merged_run, float weight) override {
    if (!has_weights_ || contributed_ != merged_run) return {};
    contributed_.reset();
    has_weights_ = false;  // Should the step fail.
    SPEEDO_ASSIGN(has_weights_, take_step(merged_run, weight));
    return {};
  }

  bool has_own_weights() const override { return has_weights_; }

  void take_own_weights() override {
    has_weights_ = true;
    contributed_.reset();
    term_ = parts_.term;
  }

  void add(const Bucket& bucket) override { parts_.add(bucket); }

  Result<std::uint64_t> commit(const TrainMessage& order) override {
    SPEEDO_ASSIGN(const std::uint64_t base, parts_.exchange.commit());
    contributed_ = order.run;
    return base;
  }

  Arena* formed_of() const override { return &parts_.learner.weights(); }
  void diverged() override { has_weights_ = false; }
  std::size_t contribution_count() const override { return parts_.count(); }

 protected:
  // The worker's half of the step of a run that was merged with `weight`. False: x is not known any
  // more.
  virtual Result<bool> take_step(std::uint64_t run, float weight) = 0;
  const WorkerParts& parts() const { return parts_; }
  std::uint64_t term() const { return term_; }

 private:
  Result<std::uint64_t> begin_at_centre(const TrainMessage& order) {
    Arena& weights = parts_.learner.weights();
    SPEEDO_ASSIGN(const RecordInfo info,
                  parts_.exchange.read_weights(order.version, parts_.host.landing(weights)));
    parts_.host.land(weights);
    term_ = info.term;
    has_weights_ = true;
    return info.version;
  }

  const WorkerParts parts_;
  bool has_weights_ = false;
  std::optional<std::uint64_t> contributed_;  // run that may have been merged
  std::uint64_t term_ = 0;                   // of the master
};

class WorkerSideUpdate : public ElasticUpdate {
 public:
  WorkerSideUpdate(const WorkerParts& parts, float rate) : ElasticUpdate(parts), rate_(rate) {
    if (!parts.host.is_direct()) memory_ = HostFloats(parts.count(), parts.shares_memory);
  }

  // A chunk of the gradients that is used up makes room for the centre's.
  void begin_contribution(const TrainMessage& order, std::uint64_t) override {
    const auto form = [this](std::size_t offset, std::size_t count) {
      const std::span<float> e = elastic().subspan(offset, count);
      const std::span<const float> x = parts().host.part(parts().learner.weights(), offset, count);
      elastic_part(e, rate_, x, e);
      return e;
    };
    parts().exchange.begin_on_weights(order.run, order.version, elastic(), form);
  }

  std::shared_ptr<SharedMemory> home() const override {
    return memory_.empty() ? parts().host.shared(parts().learner.gradients()) : memory_.shared();
  }

 private:
  // Where the centre is read to and e is formed.
  std::span<float> elastic() {
    return memory_.empty() ? parts().host.landing(parts().learner.gradients()) : memory_.values();
  }

  Result<bool> take_step(std::uint64_t, float weight) override {
    Learner& learner = parts().learner;
    if (!memory_.empty()) {
      learner.backend().device().upload(learner.gradients().data(), memory_.values());
    }
    learner.backend().axpby(learner.weights().size(), -weight, learner.gradients().data(), 1.0F,
                            learner.weights().data());
    return true;
  }

  const float rate_;
  HostFloats memory_;  // only if the gradient arena is not the host's
};

class MasterSideUpdate : public ElasticUpdate {
 public:
  using ElasticUpdate::ElasticUpdate;

  void begin_contribution(const TrainMessage& order, std::uint64_t) override {
    const auto form = [this](std::size_t offset, std::size_t count) {
      return parts().host.part(parts().learner.weights(), offset, count);
    };
    parts().exchange.begin_contribution(order.run, order.version, parts().count(), form);
  }

  // Chunks of x are copied there, when their gradients are used up.
  std::shared_ptr<SharedMemory> home() const override {
    return parts().host.shared(parts().learner.gradients());
  }

 private:
  // By way of the gradient arena, so that x stays whole if the reading breaks off.
  // The master has applied the weight already.
  Result<bool> take_step(std::uint64_t run, float) override {
    Learner& learner = parts().learner;
    const std::string key = local_key(term(), parts().exchange.worker().value);
    auto info = parts().exchange.read(key, parts().host.landing(learner.gradients()), run);
    const bool is_its =
        info && info->version == run && info->worker == parts().exchange.worker().value;
    if (!info && is_transient(info.error().code)) return info.error();
    if (!is_its) {
      SPEEDO_WARN(
          "the store has lost this worker's own weights of run {}: it begins again at the "
          "master's",
          run);
      return false;
    }
    parts().host.land(learner.gradients());
    Arena& weights = learner.weights();
    learner.backend().copy(weights.size(), learner.gradients().data(), weights.data());
    return true;
  }
};

}  // namespace

std::unique_ptr<WorkerUpdate> make_elastic_update(const UpdateSpec& spec,
                                                  const WorkerParts& parts) {
  SPEEDO_ASSERT(parts.rule != nullptr);
  if (spec.kind == UpdateKind::kElasticMaster) return std::make_unique<MasterSideUpdate>(parts);
  return std::make_unique<WorkerSideUpdate>(parts, spec.moving_rate);
}

}  // namespace speedo
