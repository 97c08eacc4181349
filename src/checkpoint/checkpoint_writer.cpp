#include "checkpoint/checkpoint_writer.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <span>
#include <utility>

#include "base/log.hpp"
#include "checkpoint/training_file.hpp"

namespace speedo {

namespace {

constexpr std::chrono::hours kUnfinishedAge{1};

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

// The part's file, if a crash, or another writer's haste, has left it without its name.
std::optional<std::filesystem::path> unnamed_part(const std::filesystem::path& folder,
                                                  const record::CheckpointFile& record,
                                                  const record::CheckpointFile::Part& part,
                                                  CheckpointFiles& files) {
  const std::filesystem::path name = folder / part.name();
  if (!files.size(name.string() + new_suffix(record))) return std::nullopt;
  auto file = find_part(folder, record, part, files);
  if (!file || *file == name) return std::nullopt;
  return *std::move(file);
}

// The names of such files, all in the folder of the records.
std::set<std::string> unnamed_parts(const std::vector<FoundRecord>& records,
                                    CheckpointFiles& files) {
  std::set<std::string> found;
  for (const FoundRecord& each : records) {
    for (const auto* part : parts_of(each.record)) {
      const auto file = unnamed_part(each.path.parent_path(), each.record, *part, files);
      if (file) found.insert(file->filename().string());
    }
  }
  return found;
}

// The renames that a crash may have left undone, or that another writer is about to do.
Result<void> finish_replacement(const std::filesystem::path& folder,
                                const record::CheckpointFile& record, CheckpointFiles& files) {
  for (const auto* part : parts_of(record)) {
    const auto file = unnamed_part(folder, record, *part, files);
    if (!file) continue;
    auto renamed = files.rename(*file, folder / part->name());
    if (!renamed && files.size(*file)) return renamed;
  }
  return {};
}

}  // namespace

CheckpointWriter::CheckpointWriter(const caffe::SolverParameter& solver, std::string job,
                                   RotationRules rules, CheckpointFiles& files)
    : solver_(solver),
      prefix_(solver.snapshot_prefix()),
      job_(std::move(job)),
      rules_(rules),
      disk_(files),
      files_(solver, files),
      rescue_(prefix_) {}

Result<void> CheckpointWriter::begin(const TrainingId& training) {
  const std::lock_guard lock(mutex_);
  training_ = training;
  disk_.sweep(prefix_ + "_iter_");
  const std::vector<FoundRecord> all = find_records(prefix_, nullptr, disk_);
  for (const FoundRecord& each : all) {
    sequence_ = std::max(sequence_, each.record.sequence());
    if (training_of(each.record) != training) continue;
    rank_min_ = std::max(rank_min_, rank_of(each.record) + 1);
    SPEEDO_TRY(finish_replacement(each.path.parent_path(), each.record, disk_));
  }
  remove_unfinished(all);
  const auto other = std::find_if(all.begin(), all.end(), [&](const FoundRecord& each) {
    return training_of(each.record) != training;
  });
  if (other != all.end()) {
    SPEEDO_INFO(
        "Under the prefix {} lie checkpoints of other trainings, the newest {} of "
        "iteration {}: they stay until training {} writes the same iterations",
        prefix_, short_name(training_of(other->record)), other->record.iteration(),
        short_name(training));
  }
  return write_training_file(training_file(prefix_, job_), training, disk_);
}

// Above all records of the prefix. A record that another training has added since the last look
// comes from one that runs at the same time.
std::uint64_t CheckpointWriter::next_sequence() {
  std::uint64_t highest = sequence_;
  for (const FoundRecord& each : find_records(prefix_, nullptr, disk_)) {
    if (each.record.sequence() <= sequence_) continue;
    highest = std::max(highest, each.record.sequence());
    if (training_of(each.record) == training_ || warned_of_other_) continue;
    warned_of_other_ = true;
    SPEEDO_WARN(
        "Another training, {}, writes checkpoints with the prefix {} too ({}): give each "
        "its own snapshot_prefix",
        short_name(training_of(each.record)), prefix_, each.path.string());
  }
  sequence_ = highest + 1;
  return sequence_;
}

Result<void> CheckpointWriter::write(const SnapshotParts& parts) {
  const std::lock_guard lock(mutex_);
  const auto iteration = static_cast<std::uint64_t>(parts.iteration);
  record::CheckpointFile record;
  record.set_job(job_);
  record.set_model_high(parts.model_digest.high);
  record.set_model_low(parts.model_digest.low);
  record.set_sequence(next_sequence());
  record.set_training_high(training_.high);
  record.set_training_low(training_.low);
  record.set_iteration(iteration);
  record.set_session(parts.session);
  if (parts.data_step) record.set_data_step(*parts.data_step);
  record.set_rank(std::max(rank_min_, term_of(parts.session)));
  if (solver_.random_seed() >= 0) record.set_random_seed(solver_.random_seed());
  record.set_solver_type(solver_.type());
  record.set_finite(true);
  if (!is_finite(parts.model) || !is_finite(parts.state)) {
    return Error{ErrorCode::kNotFinite,
                 fmt::format("the weights of iteration {} are not all finite, so no checkpoint of "
                             "them is written: training has diverged",
                             iteration)};
  }
  if (const auto tested = scores_.find(iteration); tested != scores_.end()) {
    put_score(tested->second, record);
  }
  scores_.erase(scores_.begin(), scores_.upper_bound(iteration));
  Result<void> written = write_files(parts, record);
  const bool lacks_room = !written && written.error().code == ErrorCode::kCannotWrite;
  if (lacks_room && make_room(record)) written = write_files(parts, record);
  SPEEDO_TRY(written);
  last_iteration_ = iteration;
  last_rank_ = rank_of(record);
  rotate(record);
  return {};
}

// What a later writer of the training has written stays.
Result<void> CheckpointWriter::check_earlier(const record::CheckpointFile& there,
                                             const record::CheckpointFile& record) const {
  if (training_of(there) != training_ || rank_of(there) <= rank_of(record)) return {};
  return Error{ErrorCode::kSuperseded,
               fmt::format("'{}' is of one that has taken over this training: it stays, and the "
                           "snapshot of iteration {} is not written",
                           record_path(prefix_, record.iteration()).string(), record.iteration())};
}

// Another one may have come at any moment, and may have written this iteration.
Result<void> CheckpointWriter::check_place(const record::CheckpointFile& record) const {
  const auto there = read_record(record_path(prefix_, record.iteration()), disk_);
  return there ? check_earlier(*there, record) : Result<void>();
}

Result<void> CheckpointWriter::write_files(const SnapshotParts& parts,
                                           record::CheckpointFile record) {
  remove_unnamed();
  held_.reset();
  const std::filesystem::path path = record_path(prefix_, record.iteration());
  const auto there = read_record(path, disk_);
  if (there) {
    SPEEDO_TRY(check_earlier(*there, record));
    SPEEDO_TRY(finish_replacement(path.parent_path(), *there, disk_));
  }
  unnamed_iteration_ = record.iteration();
  auto written = write_parts(parts, record);
  if (written) written = check_place(record);
  if (written) written = write_record(path, record, disk_);
  if (written) unnamed_.clear();
  if (written) written = put_in_place(record);
  if (written && there) remove_replaced_parts(path.parent_path(), *there, record, disk_);
  if (written) held_.reset();
  if (!written && lacks_unnamed()) {
    written = Error{ErrorCode::kSuperseded,
                    fmt::format("another process has removed what the snapshot of iteration {} "
                                "had not finished, which is not written",
                                record.iteration())};
  }
  if (!written && written.error().code == ErrorCode::kSuperseded) remove_unnamed();
  return written;
}

Result<void> CheckpointWriter::write_parts(const SnapshotParts& parts,
                                           record::CheckpointFile& record) {
  const SnapshotWriter::Files names = files_.files(parts.iteration);
  const std::string suffix = new_suffix(record);
  auto snapshot = files_.write(parts.iteration, parts.model, parts.state, suffix);
  unnamed_ = files_.written();
  if (!unnamed_.empty()) held_ = disk_.hold(unnamed_.front());
  if (!snapshot) return keep_weights(names.model, std::move(snapshot).error());
  SPEEDO_ASSIGN(*record.mutable_model(),
                describe_part(names.model + suffix, file_name(names.model), disk_));
  SPEEDO_ASSIGN(*record.mutable_state(),
                describe_part(names.state + suffix, file_name(names.state), disk_));
  return write_states(parts, suffix, record);
}

// Weights without their state are better than none: they get the name that they are looked for by,
// where nothing has it.
Error CheckpointWriter::keep_weights(const std::string& model, Error failed) {
  if (unnamed_.empty()) return failed;
  if (!disk_.size(model) && disk_.rename(unnamed_.front(), model)) unnamed_.front() = model;
  failed.message += " ('" + unnamed_.front() + "', written before, has the weights alone)";
  return failed;
}

Result<void> CheckpointWriter::put_in_place(const record::CheckpointFile& record) {
  const std::string suffix = new_suffix(record);
  const std::filesystem::path folder = record_path(prefix_, record.iteration()).parent_path();
  for (const auto* part : parts_of(record)) {
    const std::string name = (folder / part->name()).string();
    auto placed = check_place(record);
    if (placed) placed = disk_.rename(name + suffix, name);
    if (placed) continue;
    // Who has taken over puts in place what it finds.
    if (auto place = check_place(record); !place) placed = std::move(place);
    for (const auto* each : parts_of(record)) {
      const std::string left = (folder / each->name()).string() + suffix;
      if (disk_.size(left)) unnamed_.push_back(left);
    }
    return placed;
  }
  return {};
}

// One after the other: together they may be larger than memory. One that the store has lost is left
// out, and the rest goes on.
Result<void> CheckpointWriter::write_states(const SnapshotParts& parts, const std::string& suffix,
                                            record::CheckpointFile& record) {
  for (const WorkerId worker : parts.workers) {
    auto state = parts.state_of(worker);
    if (!state) {
      SPEEDO_WARN("the snapshot of iteration {} is without the state of worker {}: {}",
                  parts.iteration, worker.value, state.error().message);
      continue;
    }
    state->head.set_training_high(training_.high);
    state->head.set_training_low(training_.low);
    const std::string name = state_path(prefix_, record.iteration(), record.worker_size());
    const std::string bytes = to_file_bytes(*state);
    SPEEDO_TRY(disk_.write(name + suffix, std::as_bytes(std::span(bytes))));
    unnamed_.push_back(name + suffix);
    SPEEDO_ASSIGN(*record.add_worker(), describe_part(name + suffix, file_name(name), disk_));
  }
  return {};
}

Result<void> CheckpointWriter::write_or_rescue(const SnapshotParts& parts) {
  return rescue_.write([&] { return write(parts); },
                       [&](const std::string& prefix) { return write_elsewhere(prefix, parts); });
}

Result<void> CheckpointWriter::write_elsewhere(const std::string& prefix,
                                               const SnapshotParts& parts) const {
  caffe::SolverParameter solver = solver_;
  solver.set_snapshot_prefix(prefix);
  CheckpointWriter writer(solver, job_, {}, disk_);
  const auto training = [this] {
    const std::lock_guard lock(mutex_);
    return training_;
  };
  SPEEDO_TRY(writer.begin(training()));
  return writer.write(parts);
}

void CheckpointWriter::on_tested(std::uint64_t iteration, const TestScores& scores) {
  const std::lock_guard lock(mutex_);
  const Score score{scores.accuracy, scores.loss};
  if (iteration > last_iteration_) scores_[iteration] = score;
  if (iteration != last_iteration_) return;
  const std::filesystem::path path = record_path(prefix_, iteration);
  auto record = read_record(path, disk_);
  if (!record || training_of(*record) != training_ || rank_of(*record) != last_rank_) return;
  put_score(score, *record);
  if (auto written = write_record(path, *record, disk_); !written) {
    SPEEDO_WARN("{}", written.error().message);
    return;
  }
  rotate(*record);
}

std::string CheckpointWriter::last_model() const {
  const std::lock_guard lock(mutex_);
  return files_.last_model();
}

void CheckpointWriter::put_score(const Score& score, record::CheckpointFile& record) const {
  if (std::isfinite(score.accuracy)) record.set_accuracy(score.accuracy);
  if (std::isfinite(score.loss)) record.set_test_loss(score.loss);
}

void CheckpointWriter::rotate(const record::CheckpointFile& newest) const {
  const CheckpointOwner owner{job_, model_of(newest)};
  rotate_checkpoints(prefix_, owner, training_, rules_, disk_);
}

// True if there may be room now: of those that the rules keep the oldest went before its time.
bool CheckpointWriter::make_room(const record::CheckpointFile& next) const {
  if (rules_.keep.value_or(0) == 0) return false;
  RotationRules fewer = rules_;
  *fewer.keep -= 1;
  const CheckpointOwner owner{job_, model_of(next)};
  if (rotate_checkpoints(prefix_, owner, training_, fewer, disk_) == 0) return false;
  SPEEDO_WARN(
      "The snapshot of iteration {} does not fit beside those that --keep-snapshots {} "
      "keeps: an older one is removed before it is written",
      next.iteration(), *rules_.keep);
  return true;
}

// Who has taken over the training has done that before it was told that somebody is at work.
bool CheckpointWriter::lacks_unnamed() const {
  return std::ranges::any_of(unnamed_, [this](const std::string& file) {
    const auto size = disk_.size(file);
    return !size && size.error().code == ErrorCode::kNotFound;
  });
}

// What writers that were killed have left, but for what a record names. One of this training that
// stands still holds one of its files, and may still name them for an hour; one of another training
// may be at work for as long as it holds one, and has held none in its first moments.
void CheckpointWriter::remove_unfinished(const std::vector<FoundRecord>& records) {
  const std::filesystem::path stem(prefix_);
  const std::string head = stem.filename().string() + "_iter_";
  const auto listed = disk_.list(stem.has_parent_path() ? stem.parent_path() : ".");
  if (!listed) return;
  const std::set<std::string> named = unnamed_parts(records, disk_);
  std::map<std::string, std::vector<std::filesystem::path>> left;  // by the writers' suffixes
  std::set<std::string> at_work;
  for (const std::filesystem::path& file : *listed) {
    const std::string name = file.filename().string();
    const std::string suffix = new_suffix_in(name);
    if (!name.starts_with(head) || suffix.empty() || named.contains(name)) continue;
    left[suffix].push_back(file);
    if (disk_.may_be_held(file)) at_work.insert(suffix);
  }
  for (const auto& [writer, files] : left) {
    const bool is_own = writer.starts_with(new_suffix_of(training_));
    if (!is_own && at_work.contains(writer)) continue;
    remove_left(files,
                is_own && !at_work.contains(writer) ? std::chrono::hours(0) : kUnfinishedAge);
  }
}

void CheckpointWriter::remove_left(const std::vector<std::filesystem::path>& files,
                                   std::chrono::hours age_min) {
  for (const std::filesystem::path& file : files) {
    const auto age = disk_.age(file);
    if (age_min > std::chrono::hours(0) && (!age || *age < age_min)) continue;
    if (const auto removed = disk_.remove(file); !removed) {
      SPEEDO_WARN("Of a snapshot that was never finished {}", removed.error().message);
    }
  }
}

// What a write that failed has left, which stays until the next one; a record that names it may
// have been written although that failed.
void CheckpointWriter::remove_unnamed() {
  const std::vector<std::string> files = std::exchange(unnamed_, {});
  if (files.empty()) return;
  const std::filesystem::path path = record_path(prefix_, unnamed_iteration_);
  std::set<std::filesystem::path> named;
  if (const auto record = read_record(path, disk_)) {
    for (const auto* part : parts_of(*record)) {
      auto file = find_part(path.parent_path(), *record, *part, disk_);
      if (file) named.insert(*std::move(file));
    }
  }
  for (const std::string& file : files) {
    if (named.contains(file)) continue;
    if (const auto removed = disk_.remove(file); !removed) {
      SPEEDO_WARN("Of a snapshot that failed {}", removed.error().message);
    }
  }
}

}  // namespace speedo
