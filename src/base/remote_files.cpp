#include <speedo/base/remote_files.hpp>

#include <algorithm>
#include <cctype>
#include <system_error>

#include <speedo/base/file.hpp>

#include "base/input_roots.hpp"
#include "base/percent_encoding.hpp"

namespace speedo {

namespace {

RemoteFiles* installed_files = nullptr;

bool is_scheme_letter(char letter) {
  return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
         (letter >= '0' && letter <= '9') || letter == '+' || letter == '-' || letter == '.';
}

// Of s3 and hdfs the path is taken as it is.
bool is_web_uri(std::string_view uri) {
  return uri.starts_with("http://") || uri.starts_with("https://");
}

// Where the digest begins that a name ends in; else the name's end.
std::size_t digest_at(std::string_view name) {
  constexpr std::string_view kMark = "#sha256=";
  constexpr std::size_t kBytes = kMark.size() + 64;
  if (name.size() < kBytes || name.substr(name.size() - kBytes, kMark.size()) != kMark) {
    return name.size();
  }
  const std::string_view digits = name.substr(name.size() - 64);
  const bool is_digest = std::all_of(digits.begin(), digits.end(), [](unsigned char digit) {
    return std::isxdigit(digit) != 0;
  });
  return is_digest ? name.size() - kBytes : name.size();
}

// A file's name as it is written behind `uri`: none of its letters may say something else there.
std::string name_behind(std::string_view uri, std::string_view name) {
  if (!is_web_uri(uri)) return std::string(name);
  // By RFC 3986.
  const auto is_path_letter = [](unsigned char byte) {
    return is_ascii_word(byte, "/-._~!$&'()*+,;=:@");
  };
  const std::size_t end = digest_at(name);
  return percent_encode(name.substr(0, end), is_path_letter).append(name.substr(end));
}

// Without who asks, and without the query, which `cuts_on` tells for what follows a comma in it.
std::string shown_uri(std::string_view uri, bool& cuts_on) {
  const std::size_t begin = uri.find("://") + 3;
  const std::size_t host_end = std::min(uri.find_first_of("/?#", begin), uri.size());
  const std::size_t at = uri.substr(0, host_end).rfind('@');
  const bool has_user = at != std::string_view::npos && at >= begin;
  // Of these two all is a file's name.
  const bool is_plain = uri.starts_with("s3://") || uri.starts_with("hdfs://");
  const std::size_t digest = digest_at(uri);
  const std::size_t end = is_plain ? uri.size() : std::min(uri.find_first_of("?#"), digest);
  cuts_on = end < digest;
  return std::string(uri.substr(0, begin))
      .append(uri.substr(has_user ? at + 1 : begin, end - (has_user ? at + 1 : begin)))
      .append(is_plain ? std::string_view() : uri.substr(digest));
}

}  // namespace

void set_remote_files(RemoteFiles* files) { installed_files = files; }

bool is_uri(std::string_view name) {
  const std::size_t end = name.find("://");
  return end != std::string_view::npos && end > 0 &&
         std::all_of(name.begin(), name.begin() + static_cast<std::ptrdiff_t>(end),
                     is_scheme_letter);
}

std::string shown_name(std::string_view name) {
  std::string shown;
  bool cuts_on = false;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find(',', begin), name.size());
    const std::string_view part = name.substr(begin, end - begin);
    if (is_uri(part)) {
      shown += (begin > 0 ? "," : "") + shown_uri(part, cuts_on);
    } else if (!cuts_on) {
      shown.append(begin > 0 ? "," : "").append(part);
    }
    begin = end + 1;
  }
  return shown;
}

std::string resolve_name(const std::string& name, const std::filesystem::path& base) {
  if (is_uri(name)) return name;
  std::error_code code;
  const bool is_here =
      std::filesystem::path(name).is_absolute() || std::filesystem::exists(name, code);
  if (!is_here && is_uri(base.string())) {
    return base.string() + "/" + name_behind(base.string(), name);
  }
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
  const std::size_t end = is_web_uri(list_uri) ? list_uri.find_first_of("?#") : digest_at(list_uri);
  const std::string whole = list_uri.substr(0, end);
  return whole.substr(0, whole.rfind('/') + 1) + name_behind(whole, name);
}

std::string behind_root(const std::string& root, const std::string& name) {
  if (!is_uri(root)) return root + name;
  return is_uri(name) ? name : root + name_behind(root, name);
}

}  // namespace speedo
