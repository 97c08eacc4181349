#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include <speedo/core/net.hpp>
#include <speedo/core/update_rule.hpp>
#include <speedo/train/messages.hpp>
#include <speedo/train/update.hpp>

#include "train/trainer_host_view.hpp"
#include "train/trainer_exchange.hpp"

namespace speedo {

// What a worker does before and after the steps of a run: where it starts from and what it
// contributes. One class for each kind of update; it lives as long as a stage, or a worker's life.
// Thread safety: one thread at a time.
class WorkerUpdate {
 public:
  // All outlive the update; `rule` is null for kGradientOnly.
  struct Parts {
    Net& net;
    UpdateRule* rule;
    HostView& host;
    RecordExchange& exchange;

    std::size_t count() const { return static_cast<std::size_t>(net.layout().element_count()); }
  };

  virtual ~WorkerUpdate() = default;
  // Puts the weights that the run starts from into the net; their version.
  virtual Result<std::uint64_t> begin(const TrainMessage& order) = 0;
  // Whether the last step's update goes into the net's weights like the others, or is left in the
  // gradients for contribute().
  virtual bool applies_last_update() const { return true; }
  // Writes the contribution of the run that began from `base`. Returns the version of the weights
  // that it is a step from.
  virtual Result<std::uint64_t> contribute(const TrainMessage& order, std::uint64_t base) = 0;
  // The run left the net's weights not finite; nothing is contributed.
  virtual void diverged() {}
};

std::unique_ptr<WorkerUpdate> make_worker_update(const UpdateSpec& spec,
                                                 const WorkerUpdate::Parts& parts);
// Those of the two elastic kinds.
std::unique_ptr<WorkerUpdate> make_elastic_update(const UpdateSpec& spec,
                                                  const WorkerUpdate::Parts& parts);

}  // namespace speedo
