#pragma once

#include <filesystem>
#include <system_error>

namespace speedo {

// The one name of a file or folder, which need not be there: two paths of it have the same. A path
// that cannot be followed stays as it is.
inline std::filesystem::path whole_path(const std::filesystem::path& path) {
  std::error_code code;
  // From the root on: of a relative path whose first part is not there it would stay relative.
  const std::filesystem::path absolute = std::filesystem::absolute(path, code);
  if (code) return path;
  std::filesystem::path whole = std::filesystem::weakly_canonical(absolute, code);
  if (code) return path;
  return whole.has_filename() ? whole : whole.parent_path();  // "a/" is "a"
}

}  // namespace speedo
