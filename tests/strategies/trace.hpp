#pragma once

// Strategy traces as text: "train 0, train 1", "merge 0 x0.5", "average 0 1", "discard 2".

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

inline Event joined(std::vector<std::uint64_t> workers) {
  Joined event;
  for (const std::uint64_t worker : workers) event.workers.push_back({worker});
  return event;
}
inline Event left(std::uint64_t worker) { return Left{{worker}}; }
inline Event trained(std::uint64_t worker) { return Trained{{worker}, {0}, 1.0F, {0}, 1}; }
inline Event failed(std::uint64_t worker) { return Failed{{worker}, {0}}; }

inline std::unique_ptr<Strategy> strategy_named(const std::string& name) {
  StrategyOptions options;
  options.name = name;
  return make_strategy(options).value();
}

}  // namespace speedo
