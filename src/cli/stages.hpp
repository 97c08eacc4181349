#pragma once

#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/train/schedule.hpp>

#include "cli/flags/cluster_flags.hpp"

namespace speedo {

// The stages of a job: one, or those of --hybrid or --hybrid-file. Reads the files they name.
// Errors: kUsage for what contradicts itself or means nothing, naming the stage; kConfig for bad
// files, with line and column.
Result<std::vector<Schedule>> make_stages(const ClusterFlags& flags);

// Whether merges of this stage are means of rounds: an iteration then uses a shard of the data of
// every worker, else one.
bool in_rounds(const Schedule& schedule);

// Steps of the data that the first `iterations` iterations of a job use.
std::uint64_t steps_used(const std::vector<Schedule>& stages, std::uint64_t iterations,
                         std::uint64_t workers);

}  // namespace speedo
