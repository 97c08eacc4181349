#pragma once

#include <filesystem>
#include <string>

#include <speedo/base/result.hpp>

#include "sim/plan/cost_cluster.hpp"

namespace speedo {

// A cluster described in TOML; examples/simulate/cluster.toml explains every key.
// Error: kConfig with file, line and column, also for keys that are not known, and for a file that
// does not exist.
Result<sim::ClusterCosts> read_cluster(const std::filesystem::path& file);
Result<sim::ClusterCosts> parse_cluster(const std::string& text, const std::string& file);

// The description as a file that read_cluster() reads back. `origin`: a comment at its top.
std::string to_toml(const sim::ClusterCosts& cluster, const std::string& origin);

}  // namespace speedo
