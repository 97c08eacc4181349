#pragma once

#include <filesystem>
#include <string>
#include <type_traits>
#include <utility>

#include <speedo/base/remote_files.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

// An error of a file that was named so: one that speaks of the copy alone says where it came from.
inline Error from_uri(Error error, const std::string& name) {
  const std::string shown = shown_name(name);
  if (is_uri(name) && error.message.find(shown) == std::string::npos) {
    error.message += " (it came from '" + shown + "')";
  }
  return error;
}

// What `read` makes of the file that is named so. Errors: those of find_file(), and those of `read`
// by from_uri().
template <typename Read>
auto read_found(const std::string& name, const std::filesystem::path& base, const Read& read)
    -> std::invoke_result_t<Read, const std::filesystem::path&> {
  SPEEDO_ASSIGN(const std::filesystem::path file, find_file(name, base));
  auto found = read(file);
  if (!found) return from_uri(std::move(found).error(), resolve_name(name, base));
  return found;
}

}  // namespace speedo
