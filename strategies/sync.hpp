#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <speedo/train/strategy.hpp>

#include "state_text.hpp"

namespace speedo {

// Synchronous SGD; the rule is in the source.
class Sync : public Strategy {
 public:
  Commands on(const Event& event) override;
  std::string save() const override;
  Result<void> restore(std::string_view state) override;

 private:
  Commands joined(const Joined& event);
  Commands left(WorkerId worker);
  Commands reported(WorkerId worker);
  Commands end_round();
  Commands start_round();

  WorkerSet alive_;
  WorkerSet awaited_;
  WorkerSet contributed_;
};

std::unique_ptr<Strategy> make_sync(const StrategyOptions& options);

}  // namespace speedo
