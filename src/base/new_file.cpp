#include "base/new_file.hpp"

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <optional>
#include <string>
#include <system_error>

#include <fcntl.h>
#include <unistd.h>

#include <speedo/base/folder.hpp>
#include <speedo/base/temporary.hpp>

#include "base/descriptor.hpp"

namespace speedo {

namespace {

Error not_written(const std::filesystem::path& path, int reason) {
  const char* const why =
      reason == EEXIST ? "it exists, and is not written over" : std::strerror(reason);
  return {ErrorCode::kCannotWrite, "cannot write '" + path.string() + "': " + why};
}

bool write_part(int file, std::string_view part) {
  while (!part.empty()) {
    const ssize_t written = ::write(file, part.data(), part.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    part.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

// Some file systems, as NFS, rename only over what is there, but can give a file a second name.
bool name_new(const char* from, const char* to) {
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return true;
  return (errno == EINVAL || errno == ENOSYS) && ::link(from, to) == 0;
}

}  // namespace

Result<void> write_new_file(const std::filesystem::path& path,
                            std::initializer_list<std::string_view> parts, mode_t mode) {
  std::error_code code;
  const std::optional<Temporary> temporary = Temporary::path_beside(path, code);
  if (!temporary) return not_written(path, code.value());
  const char* const beside = temporary->path().c_str();
  const Descriptor file(::open(beside, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, mode));
  if (file.get() < 0) return not_written(path, errno);
  for (const std::string_view part : parts) {
    if (!write_part(file.get(), part)) return not_written(path, errno);
  }
  if (::fsync(file.get()) != 0 || !name_new(beside, path.c_str())) return not_written(path, errno);
  const Descriptor folder(::open(folder_of(path).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() >= 0) ::fsync(folder.get());
  return {};
}

}  // namespace speedo
