#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include <speedo/train/messages.hpp>
#include <speedo/train/update.hpp>

#include "sim/check/violations.hpp"

namespace speedo::sim {

// What a codec leaves out of gradients goes with the worker's next one, once its run was merged,
// and stays what it was if not: what is sent and what is kept back are together what was computed,
// bit by bit. Gradients alone: of them it is known what was computed.
class ResidualChecker {
 public:
  ResidualChecker(std::vector<UpdateSpec> stages, Violations& violations)
      : stages_(std::move(stages)), violations_(violations) {}

  // A worker's process, that contributes through the store. Gives its number.
  std::size_t add_worker();
  // In their order: what it is told to train, and of which gradient it has to send.
  void ordered(std::size_t worker, const TrainMessage& order);
  void computed(std::size_t worker, std::uint64_t run, std::vector<float> gradient);
  // What readers of the store find of this run, decoded.
  void contributed(std::uint64_t run, const std::vector<float>& values);

 private:
  using Values = std::vector<float>;
  struct Sent {
    std::uint64_t run = 0;
    Values left;  // out of it, and of those before it that were merged
  };
  struct Worker {
    std::deque<TrainMessage> orders;
    std::optional<TrainMessage> order;  // under way
    Values gradient, residual;
    std::optional<Sent> sent;
  };
  void begin(Worker& worker, const TrainMessage& order);

  const std::vector<UpdateSpec> stages_;
  Violations& violations_;
  std::deque<Worker> workers_;
  std::map<std::uint64_t, std::size_t> by_run_;
};

}  // namespace speedo::sim
