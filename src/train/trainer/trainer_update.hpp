#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include <speedo/core/update_rule.hpp>
#include <speedo/train/messages.hpp>
#include <speedo/train/update.hpp>

#include "train/trainer/learner.hpp"
#include "train/trainer/trainer_host_view.hpp"
#include "train/trainer/trainer_exchange.hpp"

namespace speedo {

// What a worker does around the steps of a run: where it starts from and what it contributes. One
// class for each kind of update; it lives as long as a stage, or a worker's incarnation.
// Thread safety: one thread at a time.
class WorkerUpdate {
 public:
  // All outlive the update; `rule` is null for kGradientOnly.
  struct Parts {
    Learner& learner;
    UpdateRule* rule;
    HostView& host;
    RecordExchange& exchange;
    bool shares_memory = false;  // with the master, where that can be
    std::uint64_t term = 0;      // of the master

    std::size_t count() const {
      return static_cast<std::size_t>(learner.layout().element_count());
    }
    // A bucket of records that hold one arena, or of their first.
    Result<void> need_weights(const Bucket& bucket) const {
      return exchange.need_weights(static_cast<std::size_t>(bucket.offset),
                                   static_cast<std::size_t>(bucket.count));
    }
    void add(const Bucket& bucket) const {
      exchange.add(static_cast<std::size_t>(bucket.offset),
                   static_cast<std::size_t>(bucket.count));
    }
  };

  virtual ~WorkerUpdate() = default;
  // Sees to it that the learner's weights are those that the run starts from; their version. They
  // may still be on their way: need_weights().
  virtual Result<std::uint64_t> begin(const TrainMessage& order) = 0;
  // Orders have come for one version after another, and the next one does so too: before begin().
  virtual void set_follows(bool /*follows*/) {}
  // Waits for a bucket of them. Error: kNotFound if they were overwritten meanwhile: begin() again.
  virtual Result<void> need_weights(const Bucket& /*bucket*/) { return {}; }
  // Whether what was computed since begin() is void, as its weights were overwritten meanwhile.
  // Then begin() again.
  virtual bool has_lost_weights() { return false; }
  // Whether the last step's update goes into the weights like the others, or is left in the
  // gradients for what is contributed.
  virtual bool applies_last_update() const { return true; }

  // The contribution of the run that began from `base`, in these steps. The last step's gradients
  // are about to be computed:
  virtual void begin_contribution(const TrainMessage& order, std::uint64_t base) = 0;
  // of a bucket's gradients the ranges that count have to be finite;
  virtual void for_counting(const Bucket& bucket,
                            const std::function<void(const Bucket&)>& visit) const {
    visit(bucket);
  }
  // its update, or without a rule its gradient, is final in a bucket, and may go out:
  virtual void add(const Bucket& bucket) = 0;
  // and in all buckets. Makes the contribution visible; the version of the weights that it is a
  // step from.
  virtual Result<std::uint64_t> commit(const TrainMessage& order) = 0;
  // The arena whose parts contributions are formed of, if it is one alone; null: there are others.
  virtual Arena* formed_of() const { return nullptr; }
  // What contributions are formed in, from its first byte on, and how many floats they have; null
  // if no other process can be given it. Nothing writes there from commit() to begin().
  virtual std::shared_ptr<SharedMemory> home() const = 0;
  virtual std::size_t contribution_count() const = 0;
  // Of a replica's weights as the run found them, if it is one whose version is compared.
  virtual std::optional<WeightsCheck> weights_check() const { return std::nullopt; }
  // What the next run starts from is probably of this version: from now on it may be read while it
  // is being written. After begin_contribution().
  virtual void expect(std::uint64_t /*version*/) {}
  // The worker waits for its next order, and what was expected may have come: does a piece of what
  // that run will have to do. False: there is nothing to do.
  virtual bool work_ahead() { return false; }
  // The run before, if it is this one, was merged with this weight: what follows from that for the
  // worker is done now. begin() may come later. Errors: those of the store.
  virtual Result<void> settle(std::uint64_t /*merged_run*/, float /*weight*/) { return {}; }
  // Whether the learner's weights are the worker's own from run to run, and that they are now.
  virtual bool has_own_weights() const { return false; }
  virtual void take_own_weights() {}
  // The run came to nothing finite, and is not committed; its weights are void.
  virtual void diverged() {}
};

std::unique_ptr<WorkerUpdate> make_worker_update(const UpdateSpec& spec,
                                                 const WorkerUpdate::Parts& parts);
// Those of the two elastic kinds.
std::unique_ptr<WorkerUpdate> make_elastic_update(const UpdateSpec& spec,
                                                  const WorkerUpdate::Parts& parts);

}  // namespace speedo
