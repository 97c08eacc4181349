#include <speedo/base/remote_files.hpp>

#include <algorithm>
#include <system_error>

#include <speedo/base/file.hpp>

#include "base/input_roots.hpp"

namespace speedo {

namespace {

RemoteFiles* installed_files = nullptr;

bool is_scheme_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '+' || letter == '-' || letter == '.';
}

}  // namespace

void set_remote_files(RemoteFiles* files) { installed_files = files; }

bool is_uri(std::string_view name) {
  const std::size_t end = name.find("://");
  return end != std::string_view::npos && end > 0 &&
         std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(end),
                     is_scheme_letter);
}

std::string resolve_name(const std::string& name, const std::filesystem::path& base) {
  if (is_uri(name)) return name;
  std::error_code code;
  const bool is_here =
      std::filesystem::path(name).is_absolute() || std::filesystem::exists(name, code);
  if (!is_here && is_uri(base.string())) return base.string() + "/" + name;
  return resolve_path(name, base).string();
}

Result<std::filesystem::path> find_file(const std::string& given,
                                        const std::filesystem::path& base) {
  const std::string name = resolve_name(given, base);
  if (!is_uri(name)) return std::filesystem::path(name);
  SPEEDO_TRY(check_input_address(name));
  if (installed_files != nullptr) {
    SPEEDO_ASSIGN(std::filesystem::path copy, installed_files->fetch(name));
    SPEEDO_TRY(admit_copy(copy));
    return copy;
  }
  // The whole text might hold a password.
  return Error{ErrorCode::kUnsupported, "a file is named by a URI (" +
                                            name.substr(0, name.find(':')) +
                                            "://...), but this program reads local files alone"};
}

bool may_be_missing(const Error& error) {
  return error.code == ErrorCode::kNotFound || error.code == ErrorCode::kRefused;
}

std::string uri_beside(const std::string& list_uri, const std::string& name) {
  if (is_uri(name) || name.starts_with('/')) return name;
  const std::string whole = list_uri.substr(0, list_uri.find_first_of("?#"));
  return whole.substr(0, whole.rfind('/') + 1) + name;
}

}  // namespace speedo
