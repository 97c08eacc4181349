#include <speedo/base/folder.hpp>

#include <algorithm>
#include <string>
#include <system_error>

namespace speedo {

namespace fs = std::filesystem;

namespace {

constexpr int kLinksMax = 40;  // one after another, as the kernel follows them

Error cannot_list(const fs::path& folder, const std::error_code& code) {
  ErrorCode kind = ErrorCode::kData;
  if (code == std::errc::no_such_file_or_directory) kind = ErrorCode::kNotFound;
  if (code == std::errc::permission_denied) kind = ErrorCode::kRefused;
  return Error{kind, "cannot list folder '" + folder.string() + "': " + code.message()};
}

}  // namespace

fs::path folder_of(const fs::path& path) {
  const fs::path folder = path.parent_path();
  return folder.empty() ? fs::path(".") : folder;
}

bool is_of_proc(const fs::path& path) { return path.native().starts_with("/proc/"); }

fs::path behind_links(fs::path path) {
  std::error_code code;
  for (int i = 0; i < kLinksMax && !is_of_proc(path); ++i) {
    const fs::path next = fs::read_symlink(path, code);
    if (code) break;
    path = path.parent_path() / next;
  }
  return path;
}

Result<std::vector<fs::path>> list_folder(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code code;
  fs::directory_iterator entry(folder, code);
  while (!code && entry != fs::directory_iterator()) {
    paths.push_back(entry->path());
    entry.increment(code);
  }
  if (code) return cannot_list(folder, code);
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace speedo
