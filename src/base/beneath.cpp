#include "base/beneath.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>

namespace speedo {

namespace {

namespace fs = std::filesystem;

// No path that comes here has a link or a "..": whatever looks like one was put there since.
int open_plain(int root, const char* path, int flags) {
  open_how how{};
  how.flags = static_cast<__u64>(flags);
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS;
  return static_cast<int>(::syscall(SYS_openat2, root, path, &how, sizeof(how)));
}

bool is_in(const fs::path& path, const fs::path& root) {
  return std::mismatch(root.begin(), root.end(), path.begin(), path.end()).first == root.end();
}

Error no_root(const fs::path& path, int reason) {
  return {code_of_file_error(reason),
          "folder '" + path.string() + "' cannot be opened: " + std::strerror(reason)};
}

}  // namespace

ErrorCode code_of_file_error(int reason) {
  if (reason == ENOENT) return ErrorCode::kNotFound;
  return reason == EACCES || reason == EPERM ? ErrorCode::kRefused : ErrorCode::kData;
}

Result<Root> open_root(const fs::path& path) {
  std::error_code code;
  const fs::path real = fs::canonical(path, code);
  if (code) return no_root(path, code.value());
  Root root{real, Descriptor(::open(real.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC))};
  if (root.folder.get() < 0) return no_root(path, errno);
  const Descriptor probe(open_plain(root.folder.get(), ".", O_PATH | O_CLOEXEC));
  if (probe.get() >= 0) return root;
  return Error{ErrorCode::kUnsupported,
               "files cannot be confined to '" + path.string() + "': openat2: " +
                   std::strerror(errno) + " (Linux 5.6 has it, and a sandbox must allow it)"};
}

std::string names_of(std::span<const Root> roots) {
  std::string names;
  for (const Root& root : roots) {
    if (!names.empty()) names += ", ";
    names += "'" + root.path.string() + "'";
  }
  return names;
}

int open_beneath(std::span<const Root> roots, const fs::path& path, int flags, fs::path& real) {
  std::error_code code;
  real = fs::canonical(path, code);
  if (code) {
    errno = code.value();
    return -1;
  }
  const auto root = std::ranges::find_if(roots, [&](const Root& each) {
    return is_in(real, each.path);
  });
  if (root == roots.end()) {
    errno = EXDEV;
    return -1;
  }
  return open_plain(root->folder.get(), real.lexically_relative(root->path).c_str(), flags);
}

}  // namespace speedo
