#include "checkpoint/checkpoint_file.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <optional>
#include <regex>
#include <span>
#include <string_view>
#include <tuple>

#include <speedo/core/update_rule.hpp>
#include <speedo/train/master_session.hpp>

#include "base/log.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kMagic("SPEEDO\1\n", 8);
constexpr std::size_t kHeaderBytes = 16;
constexpr std::size_t kRecordBytesMax = std::size_t{64} << 20U;
constexpr std::size_t kPartBytesMax = std::size_t{1} << 34U;
constexpr const char* kInfix = "_iter_";
constexpr const char* kSuffix = ".speedo";

Error damaged(const fs::path& path, const char* what) {
  return {ErrorCode::kCorrupt, "checkpoint '" + path.string() + "' " + what};
}

std::uint64_t checksum_of(std::string_view bytes) {
  return speedo::checksum_of(std::as_bytes(std::span(bytes)));
}

std::array<char, sizeof(std::uint64_t)> little_endian(std::uint64_t number) {
  std::array<char, sizeof(number)> bytes{};
  for (char& byte : bytes) {
    byte = static_cast<char>(number & 0xFFU);
    number >>= 8U;
  }
  return bytes;
}

bool are_finite(const caffe::BlobProto& blob) {
  const auto finite = [](auto value) { return std::isfinite(value); };
  return std::all_of(blob.data().begin(), blob.data().end(), finite) &&
         std::all_of(blob.double_data().begin(), blob.double_data().end(), finite);
}

bool is_complete(const record::CheckpointFile& record) {
  const auto is_name = [](const std::string& name) {
    return !name.empty() && name.find('/') == std::string::npos && name != "." && name != "..";
  };
  const auto parts = parts_of(record);
  return record.has_iteration() && record.has_job() &&
         std::ranges::all_of(parts, [&](const auto* part) { return is_name(part->name()); });
}

void put_in_order(std::vector<FoundRecord>& found) {
  std::map<TrainingId, std::uint64_t> newest;  // sequences
  for (const FoundRecord& each : found) {
    std::uint64_t& known = newest[training_of(each.record)];
    known = std::max(known, each.record.sequence());
  }
  std::ranges::sort(found, std::ranges::greater(), [&](const FoundRecord& each) {
    return std::tuple(newest[training_of(each.record)], rank_of(each.record),
                      each.record.sequence(), each.record.iteration());
  });
}

Result<record::CheckpointFile> parse_record(const fs::path& path, std::string_view bytes) {
  if (bytes.compare(0, kMagic.size(), kMagic) != 0) {
    return damaged(path, bytes.size() < kMagic.size() ? "is truncated"
                                                      : "is not a checkpoint of a SpeeDO cluster");
  }
  if (bytes.size() < kHeaderBytes) return damaged(path, "is truncated");
  const std::string_view body = bytes.substr(kHeaderBytes);
  const auto checksum = little_endian(checksum_of(body));
  if (!std::equal(checksum.begin(), checksum.end(), bytes.data() + kMagic.size())) {
    return damaged(path, "is truncated or damaged: its checksum is wrong");
  }
  record::CheckpointFile record;
  if (!record.ParseFromArray(body.data(), static_cast<int>(body.size())) || !is_complete(record)) {
    return damaged(path, "does not hold what a checkpoint must");
  }
  return record;
}

// "_iter_" digits ".speedo" behind the prefix.
bool is_record_name(const std::string& name, const std::string& prefix) {
  const std::string head = prefix + kInfix;
  if (!name.starts_with(head) || !name.ends_with(kSuffix)) return false;
  const std::size_t size = name.size() - head.size();
  if (size <= std::strlen(kSuffix)) return false;
  const std::string digits = name.substr(head.size(), size - std::strlen(kSuffix));
  return digits.find_first_not_of("0123456789") == std::string::npos;
}

Result<void> check_part(const fs::path& file, const record::CheckpointFile::Part& part,
                        CheckpointFiles& files) {
  const auto bytes = files.size(file);
  if (!bytes) {
    const bool is_gone = bytes.error().code == ErrorCode::kNotFound;
    return Error{bytes.error().code,
                 fmt::format("'{}' of the checkpoint {}: {}", file.string(),
                             is_gone ? "is missing" : "cannot be read", bytes.error().message)};
  }
  if (*bytes != part.bytes()) {
    return Error{ErrorCode::kCorrupt,
                 fmt::format("'{}' has {} bytes instead of the {} that its checkpoint was written "
                             "with: truncated, or not the same file",
                             file.string(), *bytes, part.bytes())};
  }
  SPEEDO_ASSIGN(const std::string content, files.read(file, kPartBytesMax));
  if (checksum_of(content) == part.checksum()) return {};
  return Error{ErrorCode::kCorrupt, "'" + file.string() + "' is damaged: its checksum is not the "
                                        "one that its checkpoint was written with"};
}

}  // namespace

fs::path record_path(const std::string& prefix, std::uint64_t iteration) {
  return prefix + kInfix + std::to_string(iteration) + kSuffix;
}

std::string state_path(const std::string& prefix, std::uint64_t iteration, int seat) {
  return prefix + kInfix + std::to_string(iteration) + ".worker" + std::to_string(seat);
}

Result<record::CheckpointFile> read_record(const fs::path& path, CheckpointFiles& files) {
  auto content = files.read(path, kRecordBytesMax);
  if (!content) return std::move(content).error();
  return parse_record(path, *content);
}

Result<void> write_record(const fs::path& path, const record::CheckpointFile& record,
                          CheckpointFiles& files) {
  const std::string body = record.SerializeAsString();
  const auto checksum = little_endian(checksum_of(body));
  std::string bytes(kMagic);
  bytes.append(checksum.begin(), checksum.end()).append(body);
  return files.write(path, std::as_bytes(std::span(bytes)));
}

std::vector<FoundRecord> find_records(const std::string& prefix,
                                      std::vector<DamagedRecord>* damaged,
                                      CheckpointFiles& files) {
  const fs::path stem(prefix);
  const fs::path folder = stem.has_parent_path() ? stem.parent_path() : fs::path(".");
  std::vector<FoundRecord> found;
  const auto listed = files.list(folder);
  if (!listed && listed.error().code != ErrorCode::kNotFound && damaged != nullptr) {
    damaged->push_back({folder, listed.error()});
  }
  if (!listed) return found;
  for (const fs::path& file : *listed) {
    const std::string name = file.filename().string();
    if (!is_record_name(name, stem.filename().string())) continue;
    const fs::path path = stem.has_parent_path() ? file : fs::path(name);
    auto record = read_record(path, files);
    if (record) {
      found.push_back({path, std::move(*record)});
    } else if (damaged != nullptr) {
      damaged->push_back({path, record.error()});
    }
  }
  put_in_order(found);
  return found;
}

Result<record::CheckpointFile::Part> describe_part(const fs::path& file, std::string name,
                                                   CheckpointFiles& files) {
  SPEEDO_ASSIGN(const std::string bytes, files.read(file, kPartBytesMax));
  record::CheckpointFile::Part part;
  part.set_name(std::move(name));
  part.set_bytes(bytes.size());
  part.set_checksum(checksum_of(bytes));
  return part;
}

std::string new_suffix_of(const TrainingId& training) {
  return fmt::format(".new-{:016x}-", training.low);
}

std::string new_suffix_in(const std::string& name) {
  static const std::regex pattern(R"(\.new-[0-9a-f]{16}-[0-9]+$)");
  std::smatch found;
  return std::regex_search(name, found, pattern) ? found.str() : std::string();
}

std::string new_suffix(const record::CheckpointFile& record) {
  return new_suffix_of(training_of(record)) + std::to_string(rank_of(record));
}

Result<fs::path> find_part(const fs::path& folder, const record::CheckpointFile& record,
                           const record::CheckpointFile::Part& part, CheckpointFiles& files) {
  const fs::path file = folder / part.name();
  auto checked = check_part(file, part, files);
  if (checked) return file;
  const fs::path replacement = file.string() + new_suffix(record);
  if (check_part(replacement, part, files)) return replacement;
  // Its writer may have given it its name since the first look.
  if (checked.error().code == ErrorCode::kNotFound) checked = check_part(file, part, files);
  if (checked) return file;
  return std::move(checked).error();
}

std::vector<const record::CheckpointFile::Part*> parts_of(const record::CheckpointFile& record) {
  std::vector<const record::CheckpointFile::Part*> parts{&record.model(), &record.state()};
  for (const record::CheckpointFile::Part& worker : record.worker()) parts.push_back(&worker);
  return parts;
}

Digest model_of(const record::CheckpointFile& record) {
  return {record.model_high(), record.model_low()};
}

std::uint64_t term_of(const std::string& session) {
  const auto origin = MasterSession::origin_of(session);
  return origin ? origin->term : 0;
}

std::uint64_t rank_of(const record::CheckpointFile& record) {
  return record.has_rank() ? record.rank() : term_of(record.session());
}

TrainingId training_of(const record::CheckpointFile& record) {
  return {record.training_high(), record.training_low()};
}

Result<void> check_owner(const FoundRecord& found, const CheckpointOwner& owner) {
  const record::CheckpointFile& record = found.record;
  const Digest model = model_of(record);
  if (model != owner.model) {
    return Error{ErrorCode::kMismatch,
                 "checkpoint '" + found.path.string() + "' is of another net: that of job '" +
                     record.job() + "' (fingerprint " + to_string(model) +
                     "), and this one, of job '" + owner.job + "', has " + to_string(owner.model) +
                     ": use the solver and net that it was written with, or another "
                     "snapshot_prefix for a new start"};
  }
  if (record.job() != owner.job) {
    return Error{ErrorCode::kMismatch, "checkpoint '" + found.path.string() + "' is of job '" +
                                           record.job() + "', this one is '" + owner.job +
                                           "': give --job " + record.job() +
                                           " to go on with that one"};
  }
  if (owner.solver_type.empty()) return {};
  return check_solver_type(found, owner.solver_type);
}

Result<void> check_solver_type(const FoundRecord& found, const std::string& type) {
  const std::string& written = found.record.solver_type();
  if (written.empty() || UpdateRule::have_same_histories(written, type)) return {};
  return Error{ErrorCode::kMismatch,
               fmt::format("checkpoint '{3}' is of a solver of type \"{0}\", and this one's is "
                           "\"{1}\": histories of one are not those of the other; set type: "
                           "\"{0}\", or begin new ones with --weights {2}",
                           written, type, found.record.model().name(), found.path.string())};
}

bool is_finite(const caffe::NetParameter& model) {
  for (const caffe::LayerParameter& layer : model.layer()) {
    if (!std::all_of(layer.blobs().begin(), layer.blobs().end(), are_finite)) return false;
  }
  return true;
}

bool is_finite(const caffe::SolverState& state) {
  return std::all_of(state.history().begin(), state.history().end(), are_finite);
}

}  // namespace speedo
