#pragma once

#include <memory>
#include <string>
#include <string_view>

#include <speedo/train/strategy.hpp>

#include "state_text.hpp"

namespace speedo {

// Asynchronous SGD; the rule is in the source.
class Async : public Strategy {
 public:
  Commands on(const Event& event) override;
  std::string save() const override;
  Result<void> restore(std::string_view state) override;

 private:
  Commands joined(const Joined& event);
  Commands left(WorkerId worker);
  Commands trained(WorkerId worker);
  Commands failed(WorkerId worker);

  WorkerSet running_;
};

std::unique_ptr<Strategy> make_async(const StrategyOptions& options);

}  // namespace speedo
