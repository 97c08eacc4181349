#include "support/broken_strategies.hpp"

#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {

namespace {

// A right strategy whose commands are changed on their way out.
class Altered : public Strategy {
 public:
  explicit Altered(const StrategyOptions& options, const char* name) {
    StrategyOptions right = options;
    right.name = name;
    right_ = make_strategy(right).value();
  }
  Commands on(const Event& event) override {
    Commands altered;
    for (Command& command : right_->on(event)) alter(std::move(command), altered);
    return altered;
  }

 private:
  virtual void alter(Command command, Commands& altered) = 0;
  std::unique_ptr<Strategy> right_;
};

class MergeTwice final : public Altered {
 public:
  explicit MergeTwice(const StrategyOptions& options) : Altered(options, "async") {}

 private:
  void alter(Command command, Commands& altered) override {
    altered.push_back(command);
    if (std::holds_alternative<Merge>(command) && ++merges_ % 5 == 0) altered.push_back(command);
  }
  std::uint64_t merges_ = 0;
};

class MergeTheLate final : public Altered {
 public:
  explicit MergeTheLate(const StrategyOptions& options) : Altered(options, "weedout") {}

 private:
  void alter(Command command, Commands& altered) override {
    if (const auto* late = std::get_if<Discard>(&command)) command = Merge{late->worker};
    altered.push_back(std::move(command));
  }
};

class AverageWithoutOne final : public Altered {
 public:
  explicit AverageWithoutOne(const StrategyOptions& options) : Altered(options, "sync") {}

 private:
  void alter(Command command, Commands& altered) override {
    if (auto* average = std::get_if<Average>(&command); average && average->workers.size() > 1) {
      altered.push_back(Discard{average->workers.back()});
      average->workers.pop_back();
    }
    altered.push_back(std::move(command));
  }
};

// Sync, except that a death does not change who is awaited.
class ForgetDead final : public Strategy {
 public:
  Commands on(const Event& event) override {
    if (const auto* e = std::get_if<Joined>(&event)) {
      alive_.insert(e->workers.begin(), e->workers.end());
      return awaited_.empty() ? start_round() : Commands{};
    }
    if (const auto* e = std::get_if<Left>(&event)) {
      alive_.erase(e->worker);
      return {};
    }
    if (const auto* e = std::get_if<Failed>(&event)) return reported(e->worker);
    const WorkerId worker = std::get<Trained>(event).worker;
    contributed_.insert(worker);
    return reported(worker);
  }

 private:
  Commands reported(WorkerId worker) {
    awaited_.erase(worker);
    if (!awaited_.empty()) return {};
    Commands commands;
    if (!contributed_.empty()) {
      commands.push_back(Average{{contributed_.begin(), contributed_.end()}});
    }
    contributed_.clear();
    for (const Command& command : start_round()) commands.push_back(command);
    return commands;
  }
  Commands start_round() {
    awaited_ = alive_;
    Commands commands;
    for (const WorkerId worker : awaited_) commands.push_back(Train{worker});
    return commands;
  }

  std::set<WorkerId> alive_, awaited_, contributed_;
};

// Partial synchronisation, except that who joined during a catch-up is not started at its end.
class ForgetParked final : public Strategy {
 public:
  explicit ForgetParked(StrategyOptions options) {
    options.name = "partial-sync";
    right_ = make_strategy(options).value();
  }
  Commands on(const Event& event) override {
    Commands commands = right_->on(event);
    if (const auto* e = std::get_if<Joined>(&event); e && commands.empty()) {
      forgotten_.insert(e->workers.begin(), e->workers.end());
    }
    std::erase_if(commands, [&](const Command& command) {
      const auto* train = std::get_if<Train>(&command);
      return train != nullptr && forgotten_.contains(train->worker);
    });
    return commands;
  }

 private:
  std::unique_ptr<Strategy> right_;
  std::set<WorkerId> forgotten_;
};

std::unique_ptr<Strategy> lead_off_by_one(const StrategyOptions& options) {
  return make_strategy({.name = "ssp", .staleness = options.staleness + 1}).value();
}

std::unique_ptr<Strategy> advance_off_by_one(const StrategyOptions& options) {
  return make_strategy({.name = "partial-sync", .max_advance = options.max_advance + 1}).value();
}

template <class S>
std::unique_ptr<Strategy> make(const StrategyOptions& options) {
  return std::make_unique<S>(options);
}

std::unique_ptr<Strategy> make_forget_dead(const StrategyOptions& /*options*/) {
  return std::make_unique<ForgetDead>();
}

}  // namespace

const std::vector<BrokenStrategy>& broken_strategies() {
  static const std::vector<BrokenStrategy> all = {
      {"merge-twice", "async", make<MergeTwice>},
      {"forget-dead", "sync", make_forget_dead},
      {"lead-off-by-one", "ssp", lead_off_by_one},
      {"advance-off-by-one", "partial-sync", advance_off_by_one},
      {"merge-the-late", "weedout", make<MergeTheLate>},
      {"average-without-one", "sync", make<AverageWithoutOne>},
      {"forget-parked", "partial-sync", make<ForgetParked>},
  };
  return all;
}

std::unique_ptr<Strategy> make_broken(const char* name, const StrategyOptions& options) {
  for (const BrokenStrategy& each : broken_strategies()) {
    if (std::string_view(each.name) == name) return each.make(options);
  }
  SPEEDO_ASSERT(!"no such broken strategy");
  return nullptr;
}

}  // namespace speedo
