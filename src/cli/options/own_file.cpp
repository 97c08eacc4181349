#include "cli/options/own_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

#include "base/beneath.hpp"
#include "base/descriptor.hpp"
#include "base/open_file.hpp"

namespace speedo {

namespace {

bool is_owned(const struct stat& status, uid_t user) {
  return status.st_uid == user || status.st_uid == 0;
}

Error no_own_file(const std::string& path, const std::string& why) {
  return {ErrorCode::kRefused,
          fmt::format("{}, and nobody named this file: --config {} takes it, --no-config takes the "
                      "command line alone",
                      why, path)};
}

}  // namespace

bool is_own(const struct stat& status, uid_t user, gid_t group) {
  const bool group_writes = (status.st_mode & S_IWGRP) != 0 && status.st_gid != group;
  return is_owned(status, user) && (status.st_mode & S_IWOTH) == 0 && !group_writes;
}

Result<std::string> read_own_file(const std::string& path, std::size_t bytes_max) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat link {
  }, status{};
  if (file.get() < 0 || ::lstat(path.c_str(), &link) != 0 || ::fstat(file.get(), &status) != 0) {
    const int reason = errno;
    return Error{code_of_file_error(reason),
                 "cannot read '" + path + "': " + std::strerror(reason)};
  }
  for (const struct stat& each : {link, status}) {
    if (is_owned(each, ::geteuid())) continue;
    return no_own_file(path, fmt::format("it belongs to user {}", each.st_uid));
  }
  if (!is_own(status, ::geteuid(), ::getegid())) {
    return no_own_file(path, fmt::format("other users may write it (chmod go-w {})", path));
  }
  return read_open_file(file, path, bytes_max);
}

}  // namespace speedo
