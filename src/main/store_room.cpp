#include "main/store_room.hpp"

#include "base/log.hpp"
#include "doctor/store_room.hpp"

namespace speedo {

Result<void> check_store_room(const ClusterJob& job, const StoreTerms& terms,
                              std::int64_t weight_bytes, bool force) {
  const MasterOptions& options = job.options;
  const StoredJob stored{.stages = updates_of(options.session.stages),
                         .weight_bytes = weight_bytes,
                         .workers = options.session.workers_start,
                         .part_copies = options.merger.in_parts && options.merger.part_copies,
                         .worker_states = options.session.snapshot_workers};
  SPEEDO_ASSIGN(const StoreNeed need, store_need(stored, job.solver));
  SPEEDO_ASSIGN(const std::vector<RedisOptions> servers, redis_servers(options.store, terms));
  const Finding found = check_room(servers, need);
  const std::string line = fmt::format("Redis: {}", found.what);
  if (found.health == Health::kOk) {
    SPEEDO_INFO("{}", line);
  } else if (found.health == Health::kWarning || force) {
    SPEEDO_WARN("{}: {}", line, found.remedy);
  } else {
    return Error{ErrorCode::kConfig, fmt::format("memory does not suffice for this job in {}: {}; "
                                                 "--force tries it all the same",
                                                 line, found.remedy)};
  }
  return {};
}

}  // namespace speedo
