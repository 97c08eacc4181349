#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <system_error>

#include <speedo/base/file.hpp>
#include <speedo/base/folder.hpp>
#include <speedo/base/temporary.hpp>

#include "base/beneath.hpp"
#include "base/descriptor.hpp"
#include "base/output_root.hpp"
#include "checkpoint/checkpoint_files.hpp"
#include "data/model_files.hpp"

namespace speedo {
namespace {

class DiskFiles : public CheckpointFiles {
 public:
  Result<std::vector<std::filesystem::path>> list(const std::filesystem::path& folder) override {
    return list_folder(folder);
  }
  Result<std::uint64_t> size(const std::filesystem::path& file) override {
    std::error_code code;
    const std::uintmax_t bytes = std::filesystem::file_size(file, code);
    if (!code) return std::uint64_t{bytes};
    return Error{code_of_file_error(code.value()), "'" + file.string() + "': " + code.message()};
  }
  Result<std::chrono::seconds> age(const std::filesystem::path& file) override {
    std::error_code code;
    const auto written = std::filesystem::last_write_time(file, code);
    if (code) return Error{ErrorCode::kNotFound, "'" + file.string() + "': " + code.message()};
    const auto now = std::filesystem::file_time_type::clock::now();
    return std::chrono::duration_cast<std::chrono::seconds>(now - written);
  }
  Result<std::string> read(const std::filesystem::path& file, std::size_t bytes_max) override {
    return read_file(file, bytes_max);
  }
  Result<void> write(const std::filesystem::path& file, std::span<const std::byte> bytes) override {
    SPEEDO_TRY(check_output(file));
    return write_file_atomically(file, bytes);
  }
  Result<void> rename(const std::filesystem::path& from, const std::filesystem::path& to) override {
    std::error_code code;
    std::filesystem::rename(from, to, code);
    if (!code) return {};
    return Error{ErrorCode::kCannotWrite, "cannot rename '" + from.string() + "' to '" +
                                              to.string() + "': " + code.message()};
  }
  Result<void> remove(const std::filesystem::path& file) override {
    std::error_code code;
    std::filesystem::remove(file, code);
    if (!code) return {};
    return Error{ErrorCode::kCannotWrite,
                 "'" + file.string() + "' cannot be removed: " + code.message()};
  }
  Result<void> check_writable(const std::string& prefix,
                              const std::string& longest_ending) override {
    SPEEDO_TRY(check_prefix_writable(prefix));
    return check_file_writable(prefix + longest_ending);
  }
  std::shared_ptr<const void> hold(const std::filesystem::path& file) override {
    Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (opened.get() < 0 || ::flock(opened.get(), LOCK_EX | LOCK_NB) != 0) return nullptr;
    return std::make_shared<Descriptor>(std::move(opened));
  }
  bool may_be_held(const std::filesystem::path& file) override {
    const Descriptor opened(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
    if (opened.get() < 0) return errno != ENOENT;
    return ::flock(opened.get(), LOCK_EX | LOCK_NB) != 0;
  }
  void sweep(const std::string& beginning) override { Temporary::sweep(beginning); }

  Result<caffe::NetParameter> read_model(const std::filesystem::path& file) override {
    return speedo::read_model(file);
  }
  Result<caffe::SolverState> read_state(const std::filesystem::path& file) override {
    return read_solver_state(file);
  }
  Result<void> write_model(const std::filesystem::path& file, const caffe::NetParameter& net,
                           caffe::SolverParameter::SnapshotFormat format) override {
    SPEEDO_TRY(check_output(file));
    return speedo::write_model(file, net, format);
  }
  Result<void> write_state(const std::filesystem::path& file, const caffe::SolverState& state,
                           caffe::SolverParameter::SnapshotFormat format) override {
    SPEEDO_TRY(check_output(file));
    return write_solver_state(file, state, format);
  }
};

}  // namespace

CheckpointFiles& disk_files() {
  static DiskFiles files;
  return files;
}

}  // namespace speedo
