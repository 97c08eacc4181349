#pragma once

// Strategy traces as text: "train 0, train 1", "merge 0 x0.5", "average 0 1", "discard 2".

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <speedo/train/strategy.hpp>

namespace speedo {

inline std::string to_text(const Command& command) {
  if (const auto* c = std::get_if<Merge>(&command)) {
    const std::string weight = c->weight == 1.0F ? "" : " x" + std::to_string(c->weight);
    return "merge " + std::to_string(c->worker.value) + weight;
  }
  if (const auto* c = std::get_if<Discard>(&command)) {
    return "discard " + std::to_string(c->worker.value);
  }
  if (const auto* c = std::get_if<Train>(&command)) {
    return "train " + std::to_string(c->worker.value);
  }
  std::string text = "average";
  for (const WorkerId worker : std::get<Average>(command).workers) {
    text += ' ' + std::to_string(worker.value);
  }
  return text;
}

inline std::string to_text(const Commands& commands) {
  std::string text;
  for (const Command& command : commands) {
    text += (text.empty() ? "" : ", ") + to_text(command);
  }
  return text;
}

inline Event joined(std::vector<std::uint64_t> workers, std::vector<std::string> names = {}) {
  Joined event;
  for (const std::uint64_t worker : workers) event.workers.push_back({worker});
  event.names = std::move(names);
  return event;
}
inline Event left(std::uint64_t worker) { return Left{{worker}}; }
inline Event trained(std::uint64_t worker, std::uint64_t duration_us = 0) {
  return Trained{{worker}, {0}, 1.0F, {0}, 1, duration_us};
}
inline Event failed(std::uint64_t worker) { return Failed{{worker}, {0}}; }

inline std::unique_ptr<Strategy> strategy_of(const StrategyOptions& options) {
  return make_strategy(options).value();
}
inline std::unique_ptr<Strategy> strategy_named(const std::string& name) {
  return strategy_of({.name = name});
}

// The options of a schedule with parameters that are in range.
inline StrategyOptions usual_options(const std::string& name) {
  StrategyOptions options{.name = name};
  if (name == "partial-sync") options.max_advance = 2;
  if (name == "ssp") options.staleness = 1;
  if (name == "weedout") options.window = 3;
  if (name == "grouping") options.regroup_interval = 10;
  return options;
}

}  // namespace speedo
