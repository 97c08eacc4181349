#include "remote/remote_uri.hpp"

#include <algorithm>
#include <cctype>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "base/percent_encoding.hpp"
#include "remote/lower_case.hpp"

namespace speedo {

namespace {

constexpr std::size_t kUriBytesMax = 4096;
constexpr std::size_t kSha256Digits = 64;
constexpr std::string_view kDigestMark = "#sha256=";

std::string_view scheme_text(UriScheme scheme) {
  switch (scheme) {
    case UriScheme::kHttp:
      return "http";
    case UriScheme::kHttps:
      return "https";
    case UriScheme::kS3:
      return "s3";
    case UriScheme::kHdfs:
      break;
  }
  return "hdfs";
}

std::optional<UriScheme> scheme_named(std::string_view name) {
  for (const UriScheme scheme :
       {UriScheme::kHttp, UriScheme::kHttps, UriScheme::kS3, UriScheme::kHdfs}) {
    if (scheme_text(scheme) == name) return scheme;
  }
  return std::nullopt;
}

Error bad_uri(const RemoteUri& uri, const std::string& what) {
  return usage_error(fmt::format("URI '{}' {}", uri.shown(), what));
}

// Takes the digest off the end of `rest`.
Result<void> take_digest(std::string& rest, RemoteUri& uri) {
  const std::size_t mark = rest.rfind(kDigestMark);
  if (mark == std::string::npos) return {};
  std::string digest = rest.substr(mark + kDigestMark.size());
  rest.resize(mark);
  const bool whole = digest.size() == kSha256Digits &&
                     std::all_of(digest.begin(), digest.end(),
                                 [](unsigned char digit) { return std::isxdigit(digit) != 0; });
  if (!whole) {
    return usage_error(
        fmt::format("'#sha256=' in a URI is followed by {} characters, not by the "
                    "64 hexadecimal digits that sha256sum prints",
                    digest.size()));
  }
  uri.sha256 = lower_case(std::move(digest));
  return {};
}

Result<void> check_host(const RemoteUri& uri) {
  constexpr std::string_view kOthers = ".-_:[]";
  const bool named =
      !uri.host.empty() && std::all_of(uri.host.begin(), uri.host.end(), [&](unsigned char letter) {
        return std::isalnum(letter) != 0 ||
               kOthers.find(static_cast<char>(letter)) != std::string_view::npos;
      });
  if (!named) {
    return bad_uri(uri, uri.scheme == UriScheme::kS3 ? "names no bucket: write s3://BUCKET/KEY"
                                                     : "names no host");
  }
  const bool bucket = uri.host.find_first_of(":[]") == std::string::npos;
  if (uri.scheme == UriScheme::kS3 && !bucket) return bad_uri(uri, "names no bucket");
  return {};
}

Result<void> check_path(const RemoteUri& uri) {
  const std::string all = uri.path + uri.query;
  const bool printable = std::all_of(all.begin(), all.end(), [](unsigned char letter) {
    return letter >= 0x20 && letter != 0x7f;
  });
  if (!printable) return usage_error("a URI holds a control character");
  const std::string name = uri.file_name();
  if (name.empty() || name == "." || name == "..") {
    return bad_uri(uri, "names a folder, but a file is needed");
  }
  return {};
}

// Blanks, and the bytes of other letters than English ones, as they are sent.
std::string sendable(const std::string& text) {
  return percent_encode(text, [](unsigned char byte) { return byte != ' ' && byte < 0x80; });
}

}  // namespace

std::string RemoteUri::text() const { return shown() + query; }

std::string RemoteUri::shown() const {
  return fmt::format("{}://{}{}", scheme_text(scheme), host, path);
}

std::string RemoteUri::folder() const {
  const std::string whole = shown();
  return whole.substr(0, whole.rfind('/') + 1) + query;
}

Result<RemoteUri> parse_uri(const std::string& text) {
  RemoteUri uri;
  const std::size_t colon = text.find("://");
  if (colon == std::string::npos) return usage_error("'" + text + "' is no URI");
  const auto scheme = scheme_named(text.substr(0, colon));
  if (!scheme) {
    return Error{ErrorCode::kUnsupported,
                 fmt::format("files cannot be read by '{}://': http, https, s3 and hdfs are known",
                             text.substr(0, colon))};
  }
  uri.scheme = *scheme;
  if (text.size() > kUriBytesMax) {
    return usage_error(fmt::format("a URI has {} bytes, more than {}", text.size(), kUriBytesMax));
  }
  std::string rest = text.substr(colon + 3);
  SPEEDO_TRY(take_digest(rest, uri));
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  uri.host = rest.substr(0, slash);
  uri.path = rest.substr(slash);
  if (const std::size_t at = uri.host.rfind('@'); at != std::string::npos) {
    uri.host = uri.host.substr(at + 1);
    uri.path.resize(std::min(uri.path.find_first_of("?#"), uri.path.size()));
    return bad_uri(uri,
                   "holds a user's name or password, which would be seen in logs and "
                   "process lists: for http put them into ~/.netrc");
  }
  if (uri.path.empty()) uri.path = "/";
  const bool has_query = uri.scheme == UriScheme::kHttp || uri.scheme == UriScheme::kHttps;
  if (has_query && uri.path.find('#') != std::string::npos) {
    uri.path.resize(uri.path.find_first_of("?#"));
    return bad_uri(uri,
                   "goes on with a '#' that is not that of #sha256=: write %23 for one that is "
                   "part of a name");
  }
  if (const std::size_t mark = uri.path.find('?'); has_query && mark != std::string::npos) {
    uri.query = uri.path.substr(mark);
    uri.path.resize(mark);
  }
  SPEEDO_TRY(check_host(uri));
  SPEEDO_TRY(check_path(uri));
  if (has_query) {
    uri.path = sendable(uri.path);
    uri.query = sendable(uri.query);
  }
  return uri;
}

std::string percent_encoded(const std::string& path) {
  return percent_encode(path, [](unsigned char byte) { return is_ascii_word(byte, "-_.~/"); });
}

}  // namespace speedo
