#pragma once

#include <cstdint>

#include <speedo/base/result.hpp>

#include "main/cluster_job.hpp"
#include "main/parts.hpp"

namespace speedo {

// Whether the job's Redis has room for what it stores, weights of so many bytes among it: logs what
// is found. Error: kConfig, with the figures, if it can never have; with `force` a warning.
Result<void> check_store_room(const ClusterJob& job, const StoreTerms& terms,
                              std::int64_t weight_bytes, bool force);

}  // namespace speedo
