#include "main/resume.hpp"

#include <utility>
#include <vector>

#include "base/log.hpp"
#include "data/model_files.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

Result<SavedCheckpoint> load(FoundRecord found, const CheckpointOwner& owner) {
  SPEEDO_TRY(check_owner(found, owner));
  const fs::path folder = found.path.parent_path();
  SPEEDO_ASSIGN(const fs::path model, find_part(folder, found.record.model()));
  SPEEDO_ASSIGN(const fs::path state, find_part(folder, found.record.state()));
  SavedCheckpoint saved;
  SPEEDO_ASSIGN(saved.model, read_model(model));
  SPEEDO_ASSIGN(saved.state, read_solver_state(state));
  if (!is_finite(saved.model) || !is_finite(saved.state)) {
    return Error{ErrorCode::kData, "checkpoint '" + found.path.string() +
                                       "' holds weights that are not finite: training had "
                                       "diverged; go on from an earlier one"};
  }
  saved.record = std::move(found.record);
  return saved;
}

}  // namespace

Result<SavedCheckpoint> load_checkpoint(const std::string& file, const CheckpointOwner& owner) {
  SPEEDO_ASSIGN(record::CheckpointFile record, read_record(file));
  return load({file, std::move(record)}, owner);
}

std::optional<SavedCheckpoint> newest_checkpoint(const std::string& prefix,
                                                 const CheckpointOwner& owner) {
  std::vector<DamagedRecord> damaged;
  const std::vector<FoundRecord> all = find_records(prefix, &damaged);
  for (const DamagedRecord& each : damaged) {
    SPEEDO_WARN("--resume=auto skips {}: {}", each.path.string(), each.error.message);
  }
  for (const FoundRecord& found : all) {
    auto saved = load(found, owner);
    if (saved) {
      SPEEDO_INFO("--resume=auto: the newest valid checkpoint file is {}, iteration {}",
                  found.path.string(), found.record.iteration());
      return std::move(*saved);
    }
    SPEEDO_WARN("--resume=auto skips {}: {}", found.path.string(), saved.error().message);
  }
  return std::nullopt;
}

}  // namespace speedo
