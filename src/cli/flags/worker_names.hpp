#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/flags/cluster_flags.hpp"

namespace speedo {

// Where all workers that can join are known, a name of --shard-by or of a group that none of them
// has is a slip. `names`: of the workers or their hosts; `here` says them. Errors: kUsage or
// kConfig, naming the flag or the file; those of make_stages() and parse_shard_by().
Result<void> check_worker_names(const ClusterFlags& flags, const std::vector<std::string>& names,
                                const std::string& here);

}  // namespace speedo
