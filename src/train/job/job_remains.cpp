#include "train/job/job_remains.hpp"

#include <utility>

#include <speedo/train/job_end.hpp>

#include "speedo.pb.h"
#include "train/job/master_lease.hpp"

namespace speedo {

Result<JobRemains> look_at_remains(ParameterStore& store) {
  JobRemains remains;
  std::uint64_t term = 0;
  const auto weights = store.read(weights_key());
  if (weights) {
    const RecordInfo& info = (*weights)->info();
    record::Session session;
    if (session.ParseFromString(info.state)) remains.iteration = session.iteration();
    remains.floats = info.element_count;
    term = info.term;
  } else if (weights.error().code != ErrorCode::kNotFound) {
    return weights.error();
  }
  SPEEDO_ASSIGN(remains.is_over, is_job_over(store, term));
  return remains;
}

Result<void> remove_remains(const std::shared_ptr<ParameterStore>& store, const std::string& name,
                            std::function<std::optional<std::string>()> poll_stop) {
  MasterLease::Options options;
  options.job = name;
  options.remedy = "stop it first";
  options.poll_stop = std::move(poll_stop);
  SPEEDO_ASSIGN(const std::unique_ptr<MasterLease> lease, MasterLease::claim(store, options));
  store->fence(lease->term());
  return store->clear();
}

}  // namespace speedo
