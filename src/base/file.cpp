#include <speedo/base/file.hpp>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

namespace speedo {

namespace {

Error cannot_write(const std::filesystem::path& path, const char* what) {
  return Error{ErrorCode::kCannotWrite, "cannot write '" + path.string() + "': " + what + ": " +
                                            std::strerror(errno)};
}

// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;
  int get() const { return fd_; }

 private:
  int fd_;
};

bool write_all(int fd, std::span<const std::byte> bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(written));
  }
  return true;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  const std::filesystem::path folder = path.parent_path();
  return folder.empty() ? std::filesystem::path(".") : folder;
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::size_t bytes_max) {
  std::error_code code;
  if (!std::filesystem::exists(path, code)) {
    return Error{ErrorCode::kNotFound, "file '" + path.string() + "' does not exist"};
  }
  if (!std::filesystem::is_regular_file(path, code)) {
    return Error{ErrorCode::kData, "'" + path.string() + "' is not a regular file"};
  }
  if (std::filesystem::file_size(path, code) > bytes_max) {
    return Error{ErrorCode::kData, "file '" + path.string() + "' is longer than the limit of " +
                                       std::to_string(bytes_max) + " bytes"};
  }
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  if (!stream.is_open() || stream.bad()) {
    return Error{ErrorCode::kData,
                 "cannot read '" + path.string() + "': " + std::strerror(errno)};
  }
  return std::move(content).str();
}

Result<void> write_file_atomically(const std::filesystem::path& path,
                                   std::span<const std::byte> bytes) {
  const std::filesystem::path temporary =
      path.string() + ".tmp." + std::to_string(::getpid());
  {
    const int flags = O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC;
    const Descriptor file(::open(temporary.c_str(), flags, 0644));
    if (file.get() < 0) return cannot_write(path, "open");
    if (!write_all(file.get(), bytes) || ::fsync(file.get()) != 0) {
      const Error error = cannot_write(path, "write");
      ::unlink(temporary.c_str());
      return error;
    }
  }
  if (::rename(temporary.c_str(), path.c_str()) != 0) {
    const Error error = cannot_write(path, "rename");
    ::unlink(temporary.c_str());
    return error;
  }
  const Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
  return {};
}

Result<void> check_prefix_writable(const std::string& prefix) {
  const std::filesystem::path probe = prefix + ".probe." + std::to_string(::getpid());
  const Descriptor file(::open(probe.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644));
  if (file.get() < 0) {
    return Error{ErrorCode::kCannotWrite,
                 "snapshots cannot be written to '" + folder_of(probe).string() +
                     "': " + std::strerror(errno) +
                     " (create the folder or change snapshot_prefix)"};
  }
  ::unlink(probe.c_str());
  return {};
}

std::filesystem::path resolve_path(const std::string& path, const std::filesystem::path& base) {
  std::error_code code;
  if (std::filesystem::path(path).is_absolute() || std::filesystem::exists(path, code)) return path;
  const std::filesystem::path beside = base / path;
  if (std::filesystem::exists(beside, code)) return beside;
  return path;
}

}  // namespace speedo
