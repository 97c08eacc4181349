#include "sim/simulated_disk.hpp"

#include "base/text_of.hpp"

namespace speedo::sim {
namespace {

Error no_file(const std::filesystem::path& file) {
  return {ErrorCode::kNotFound, "file '" + file.string() + "' does not exist"};
}

template <class Message>
Result<Message> parse_message(const std::filesystem::path& file, const std::string& bytes) {
  Message message;
  if (message.ParseFromString(bytes)) return message;
  return Error{ErrorCode::kData, "file '" + file.string() + "' is damaged"};
}

}  // namespace

bool SimulatedDisk::damage(const std::filesystem::path& path, bool truncates,
                           const FaultMark& mark) {
  const auto found = files_.find(path);
  if (found == files_.end() || found->second.bytes.empty()) return false;
  std::string& bytes = found->second.bytes;
  if (truncates) {
    bytes.resize(bytes.size() / 2);
  } else {
    bytes[bytes.size() / 2] ^= 1;
  }
  found->second.is_whole = false;
  found->second.fault = mark;
  return true;
}

Result<std::vector<std::filesystem::path>> ProcessFiles::list(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& [path, file] : disk_.files_) {
    if (path.parent_path() == folder) found.push_back(path);
  }
  return found;
}

Result<std::uint64_t> ProcessFiles::size(const std::filesystem::path& file) {
  const auto found = disk_.files_.find(file);
  if (found == disk_.files_.end()) return no_file(file);
  if (looks_for_start_) found->second.fault.felt();
  return std::uint64_t{found->second.bytes.size()};
}

Result<std::string> ProcessFiles::read(const std::filesystem::path& file, std::size_t bytes_max) {
  const auto found = disk_.files_.find(file);
  if (found == disk_.files_.end()) return no_file(file);
  if (looks_for_start_) found->second.fault.felt();
  if (found->second.bytes.size() <= bytes_max) return found->second.bytes;
  return Error{ErrorCode::kData, "file '" + file.string() + "' is too long"};
}

// A process that dies goes no further.
void ProcessFiles::change(const std::function<void()>& action) {
  const bool strikes = strike_.strike && strike_.count-- == 0;
  if (!strikes || strike_.with_effect) action();
  if (!strikes) return;
  const auto strike = std::exchange(strike_, {}).strike;
  strike();
  platform_->leave_if_dead();
}

Result<void> ProcessFiles::write(const std::filesystem::path& file,
                                 std::span<const std::byte> bytes) {
  change([&] { disk_.files_[file] = {std::string(text_of(bytes)), true, {}}; });
  return {};
}

Result<void> ProcessFiles::rename(const std::filesystem::path& from,
                                  const std::filesystem::path& to) {
  if (!disk_.files_.contains(from)) {
    return Error{ErrorCode::kCannotWrite, no_file(from).message};
  }
  change([&] {
    disk_.files_[to] = disk_.files_.at(from);
    disk_.files_.erase(from);
  });
  return {};
}

Result<void> ProcessFiles::remove(const std::filesystem::path& file) {
  change([&] { disk_.files_.erase(file); });
  return {};
}

Result<caffe::NetParameter> ProcessFiles::read_model(const std::filesystem::path& file) {
  SPEEDO_ASSIGN(const std::string bytes, read(file, SIZE_MAX));
  return parse_message<caffe::NetParameter>(file, bytes);
}

Result<caffe::SolverState> ProcessFiles::read_state(const std::filesystem::path& file) {
  SPEEDO_ASSIGN(const std::string bytes, read(file, SIZE_MAX));
  return parse_message<caffe::SolverState>(file, bytes);
}

Result<void> ProcessFiles::write_model(const std::filesystem::path& file,
                                       const caffe::NetParameter& net,
                                       caffe::SolverParameter::SnapshotFormat /*format*/) {
  const std::string bytes = net.SerializeAsString();
  return write(file, std::as_bytes(std::span(bytes)));
}

Result<void> ProcessFiles::write_state(const std::filesystem::path& file,
                                       const caffe::SolverState& state,
                                       caffe::SolverParameter::SnapshotFormat /*format*/) {
  const std::string bytes = state.SerializeAsString();
  return write(file, std::as_bytes(std::span(bytes)));
}

}  // namespace speedo::sim
