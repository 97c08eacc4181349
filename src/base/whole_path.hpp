#pragma once

#include <algorithm>
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

// Whether `inner` is `outer` or lies in it. Requires: both are whole_path()s.
inline bool is_within(const std::filesystem::path& inner, const std::filesystem::path& outer) {
  return std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end()).first == outer.end();
}

}  // namespace speedo
