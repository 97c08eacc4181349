#include "checkpoint/rotation.hpp"

#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "base/log.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

bool is_whole(const FoundRecord& found, CheckpointFiles& files) {
  const fs::path folder = found.path.parent_path();
  return std::ranges::all_of(parts_of(found.record), [&](const auto* part) {
    return find_part(folder, found.record, *part, files).has_value();
  });
}

// Higher is better; empty for what was not tested.
std::optional<float> score(const record::CheckpointFile& record) {
  if (record.has_accuracy()) return record.accuracy();
  if (record.has_test_loss()) return -record.test_loss();
  return std::nullopt;
}

// Of equally good ones the newest. `all`: the newest first.
const FoundRecord* best_of(const std::vector<FoundRecord>& all) {
  const FoundRecord* best = nullptr;
  for (const FoundRecord& each : all) {
    const auto mine = score(each.record);
    if (!mine || !each.record.finite()) continue;
    if (best == nullptr || *mine > *score(best->record)) best = &each;
  }
  return best;
}

bool remove_file(const fs::path& file, CheckpointFiles& files) {
  const auto removed = files.remove(file);
  if (!removed) SPEEDO_WARN("Of an old checkpoint {}", removed.error().message);
  return removed.has_value();
}

void remove_part(const fs::path& folder, const record::CheckpointFile& record,
                 const record::CheckpointFile::Part& part, CheckpointFiles& files) {
  const fs::path name = folder / part.name();
  if (auto file = find_part(folder, record, part, files)) {
    remove_file(*file, files);
  } else if (files.size(name)) {
    SPEEDO_WARN("'{}' stays: it is not as its checkpoint was written", name.string());
  }
}

// False if its record stays.
bool remove_checkpoint(const FoundRecord& found, CheckpointFiles& files) {
  for (const auto* part : parts_of(found.record)) {
    remove_part(found.path.parent_path(), found.record, *part, files);
  }
  return remove_file(found.path, files);
}

}  // namespace

std::size_t rotate_checkpoints(const std::string& prefix, const CheckpointOwner& owner,
                               const TrainingId& training, const RotationRules& rules,
                               CheckpointFiles& files) {
  if (!rules.keep) return 0;
  std::vector<FoundRecord> all = find_records(prefix, nullptr, files);
  std::erase_if(all, [&](const FoundRecord& each) {
    return !check_owner(each, owner) || training_of(each.record) != training;
  });
  if (all.size() <= *rules.keep) return 0;
  std::set<fs::path> kept;
  for (std::size_t i = 0; i < *rules.keep; ++i) kept.insert(all[i].path);
  if (rules.keep_best) {
    if (const FoundRecord* best = best_of(all)) kept.insert(best->path);
  }
  const auto usable = std::find_if(all.begin(), all.end(), [&](const FoundRecord& each) {
    return each.record.finite() && is_whole(each, files);
  });
  if (usable != all.end()) kept.insert(usable->path);
  std::size_t removed = 0;
  for (const FoundRecord& each : all) {
    if (!kept.contains(each.path) && remove_checkpoint(each, files)) ++removed;
  }
  return removed;
}

void remove_replaced_parts(const fs::path& folder, const record::CheckpointFile& replaced,
                           const record::CheckpointFile& by, CheckpointFiles& files) {
  std::set<std::string> named;
  for (const auto* part : parts_of(by)) named.insert(part->name());
  for (const auto* part : parts_of(replaced)) {
    if (!named.contains(part->name())) remove_part(folder, replaced, *part, files);
  }
}

}  // namespace speedo
