#include "main/checkpoint_writer.hpp"

#include <cmath>
#include <utility>

#include "base/log.hpp"

namespace speedo {

namespace {

std::uint64_t next_sequence(const std::string& prefix) {
  const std::vector<FoundRecord> all = find_records(prefix);
  return all.empty() ? 1 : all.front().record.sequence() + 1;
}

std::string file_name(const std::string& path) {
  return std::filesystem::path(path).filename().string();
}

Result<void> rename_file(const std::string& from, const std::string& to) {
  std::error_code code;
  std::filesystem::rename(from, to, code);
  if (!code) return {};
  return Error{ErrorCode::kCannotWrite,
               "cannot rename '" + from + "' to '" + to + "': " + code.message()};
}

// The renames that a crash may have left undone.
Result<void> finish_replacement(const std::filesystem::path& folder,
                                const record::CheckpointFile& record) {
  for (const auto* part : {&record.model(), &record.state()}) {
    const std::filesystem::path name = folder / part->name();
    const auto file = find_part(folder, *part);
    if (file && *file != name) SPEEDO_TRY(rename_file(file->string(), name.string()));
  }
  return {};
}

}  // namespace

CheckpointWriter::CheckpointWriter(const caffe::SolverParameter& solver, std::string job,
                                   RotationRules rules)
    : prefix_(solver.snapshot_prefix()),
      seed_(solver.random_seed()),
      job_(std::move(job)),
      rules_(rules),
      files_(solver) {}

Result<void> CheckpointWriter::write(const SnapshotParts& parts) {
  const std::lock_guard lock(mutex_);
  const auto iteration = static_cast<std::uint64_t>(parts.iteration);
  record::CheckpointFile record;
  record.set_job(job_);
  record.set_model_high(parts.model_digest.high);
  record.set_model_low(parts.model_digest.low);
  record.set_sequence(next_sequence(prefix_));
  record.set_iteration(iteration);
  record.set_session(parts.session);
  if (seed_ >= 0) record.set_random_seed(seed_);
  record.set_finite(is_finite(parts.model) && is_finite(parts.state));
  if (!record.finite()) {
    SPEEDO_WARN("The weights of iteration {} are not all finite: training has diverged", iteration);
  }
  if (const auto tested = scores_.find(iteration); tested != scores_.end()) {
    put_score(tested->second, record);
  }
  scores_.erase(scores_.begin(), scores_.upper_bound(iteration));
  SPEEDO_TRY(write_files(parts, record));
  last_iteration_ = iteration;
  rotate(record);
  return {};
}

Result<void> CheckpointWriter::write_files(const SnapshotParts& parts,
                                           record::CheckpointFile& record) {
  const std::filesystem::path path = record_path(prefix_, record.iteration());
  const SnapshotWriter::Files names = files_.files(parts.iteration);
  std::string suffix;
  if (auto there = read_record(path)) {
    suffix = kNewSuffix;
    SPEEDO_TRY(finish_replacement(path.parent_path(), *there));
  }
  SPEEDO_TRY(files_.write(parts.iteration, parts.model, parts.state, suffix));
  SPEEDO_ASSIGN(*record.mutable_model(),
                describe_part(names.model + suffix, file_name(names.model)));
  SPEEDO_ASSIGN(*record.mutable_state(),
                describe_part(names.state + suffix, file_name(names.state)));
  SPEEDO_TRY(write_record(path, record));
  if (suffix.empty()) return {};
  SPEEDO_TRY(rename_file(names.model + suffix, names.model));
  return rename_file(names.state + suffix, names.state);
}

void CheckpointWriter::on_tested(std::uint64_t iteration, const TestScores& scores) {
  const std::lock_guard lock(mutex_);
  const Score score{scores.accuracy, scores.loss};
  if (iteration > last_iteration_) scores_[iteration] = score;
  if (iteration != last_iteration_) return;
  const std::filesystem::path path = record_path(prefix_, iteration);
  auto record = read_record(path);
  if (!record) return;
  put_score(score, *record);
  if (auto written = write_record(path, *record); !written) {
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
  rotate_checkpoints(prefix_, {job_, Digest{newest.model_high(), newest.model_low()}}, rules_);
}

}  // namespace speedo
