#include <speedo/base/file.hpp>

#include <cerrno>
#include <cstring>
#include <optional>
#include <system_error>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <speedo/base/folder.hpp>
#include <speedo/base/temporary.hpp>

#include "base/beneath.hpp"
#include "base/descriptor.hpp"
#include "base/input_roots.hpp"
#include "base/open_file.hpp"
#include "base/output_root.hpp"
#include "base/shown_text.hpp"
#include "base/write_all.hpp"
#include "base/write_fault.hpp"

namespace speedo {

namespace {

constexpr std::size_t kReadBlock = 4096;  // behind the end that a file is said to have

Error cannot_write(const std::filesystem::path& path, const std::string& why) {
  return Error{ErrorCode::kCannotWrite, "cannot write '" + path.string() + "': " + why};
}

Error cannot_read(const std::filesystem::path& path, int reason) {
  return Error{code_of_file_error(reason),
               "cannot read '" + path.string() + "': " + std::strerror(reason)};
}

Error no_such_file(const std::filesystem::path& path) {
  return {ErrorCode::kNotFound, "file '" + shown_text(path.string()) + "' does not exist"};
}

// A device, a pipe or a socket: nothing that another file could take the place of.
bool is_special(const std::filesystem::path& path) {
  std::error_code code;
  const std::filesystem::file_status status = std::filesystem::status(path, code);
  return std::filesystem::exists(status) && std::filesystem::is_other(status);
}

Result<void> write_through(const std::filesystem::path& path, std::span<const std::byte> bytes) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_TRUNC | O_CLOEXEC));
  if (file.get() >= 0 && write_all(file.get(), bytes)) return {};
  return cannot_write(path, write_fault(errno));
}

// What helps against a folder that takes no new file.
const char* remedy_for(int reason) {
  switch (reason) {
    case ENOENT:
      return "create the folder";
    case EACCES:
    case EPERM:
      return "let this user write there";
    case ENOSPC:
    case EDQUOT:
      return "make room there";
    case EROFS:
      return "mount it for writing";
    default:
      return "mend the folder";
  }
}

}  // namespace

Result<std::string> read_file(const std::filesystem::path& path, std::size_t bytes_max) {
  auto file = open_input(path);
  if (!file && file.error().code == ErrorCode::kNotFound) return no_such_file(path);
  if (!file) return std::move(file).error();
  return read_open_file(*file, path, bytes_max);
}

Result<std::string> read_unconfined_file(const std::filesystem::path& path,
                                         std::size_t bytes_max) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (file.get() >= 0) return read_open_file(file, path, bytes_max);
  const int reason = errno;
  if (code_of_file_error(reason) == ErrorCode::kNotFound) return no_such_file(path);
  return cannot_read(path, reason);
}

Result<std::string> read_open_file(const Descriptor& file, const std::filesystem::path& path,
                                   std::size_t bytes_max) {
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kData, "'" + path.string() + "' is not a regular file"};
  }
  const Error too_long{ErrorCode::kData, "file '" + path.string() +
                                             "' is longer than the limit of " +
                                             std::to_string(bytes_max) + " bytes"};
  if (static_cast<std::uint64_t>(status.st_size) > bytes_max) return too_long;
  std::string content(static_cast<std::size_t>(status.st_size), '\0');
  std::size_t filled = 0;
  // What a file of the system holds its size does not tell.
  while (true) {
    if (filled == content.size()) content.resize(filled + kReadBlock);
    const ssize_t count = ::read(file.get(), content.data() + filled, content.size() - filled);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return cannot_read(path, errno);
    if (count == 0) break;
    filled += static_cast<std::size_t>(count);
    if (filled > bytes_max) return too_long;
  }
  content.resize(filled);
  return content;
}

Result<void> write_file_atomically(const std::filesystem::path& path,
                                   std::span<const std::byte> bytes) {
  const std::filesystem::path target = behind_links(path);
  if (is_special(path) || is_of_proc(target)) return write_through(path, bytes);
  std::error_code code;
  std::optional<Temporary> temporary = Temporary::file_beside(target, code);
  if (!temporary) return cannot_write(path, write_fault(code.value()));
  if (!write_all(temporary->descriptor(), bytes)) return cannot_write(path, write_fault(errno));
  return temporary->put_in_place();
}

Result<void> write_file_atomically(const std::filesystem::path& path, std::string_view text) {
  return write_file_atomically(path, std::as_bytes(std::span(text)));
}

Result<void> check_file_writable(const std::filesystem::path& path) {
  const std::filesystem::path target = behind_links(path);
  if (is_special(path) || is_of_proc(target)) return {};
  std::error_code ignored, code;
  if (std::filesystem::is_directory(target, ignored)) return cannot_write(path, "it is a folder");
  if (Temporary::file_beside(target, code)) return {};
  return cannot_write(path, write_fault(code.value()));
}

Result<void> write_new_file(const std::filesystem::path& path,
                            std::initializer_list<std::string_view> parts,
                            std::filesystem::perms mode) {
  std::error_code code;
  std::optional<Temporary> temporary = Temporary::file_beside(path, code, mode);
  if (!temporary) return cannot_write(path, write_fault(code.value()));
  for (const std::string_view part : parts) {
    if (!write_all(temporary->descriptor(), std::as_bytes(std::span(part)))) {
      return cannot_write(path, write_fault(errno));
    }
  }
  return temporary->put_in_new_place();
}

Result<void> check_prefix_writable(const std::string& prefix) {
  // A prefix may end in the name of a folder, or be empty: a snapshot's name goes on from there.
  const std::string name = prefix + "_iter_";
  SPEEDO_TRY(check_output(name));
  std::error_code code;
  if (Temporary::file_beside(name, code)) return {};
  std::error_code ignored;
  const std::filesystem::path whole =
      std::filesystem::absolute(folder_of(prefix), ignored).lexically_normal();
  return Error{ErrorCode::kCannotWrite, "snapshots cannot be written to '" + whole.string() +
                                            "': " + code.message() + " (" +
                                            remedy_for(code.value()) +
                                            " or change snapshot_prefix)"};
}

std::filesystem::path resolve_path(const std::string& path, const std::filesystem::path& base) {
  std::error_code code;
  if (std::filesystem::path(path).is_absolute()) return path;
  if (std::filesystem::path found = find_in_roots(path); !found.empty()) return found;
  if (std::filesystem::exists(path, code)) return path;
  const std::filesystem::path beside = base / path;
  if (std::filesystem::exists(beside, code)) return beside;
  return path;
}

}  // namespace speedo
