#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include <speedo/base/result.hpp>

namespace speedo {

// What a worker of a net has alone, and --snapshot-workers writes of each, in bytes of numbers: a
// file has a few hundred bytes besides, the store as much while it is written.
struct StateForecast {
  struct OfSolver {
    std::string type;
    std::int64_t full_delta = 0, elastic = 0, gradient_only = 0;
  };
  std::vector<OfSolver> solvers;   // of every type
  std::int64_t codec_residual = 0;  // more of it with a lossy codec, but for elastic kinds
};

// `weight_bytes`: of the net, as Net::memory() has it.
Result<StateForecast> forecast_states(std::int64_t weight_bytes);

std::string to_text(const StateForecast& forecast);  // lines
nlohmann::ordered_json to_json(const StateForecast& forecast);

}  // namespace speedo
