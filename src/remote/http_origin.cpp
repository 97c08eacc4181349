// A file of a web server. HEAD tells its size; where that is not allowed, as for presigned URIs,
// or tells none, the first byte is asked for, whose Content-Range tells it.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "remote/lower_case.hpp"
#include "remote/origin.hpp"

namespace speedo {

namespace {

constexpr int kPartialContent = 206, kRangeNotSatisfiable = 416;

Error broken_promise(const RemoteUri& uri, const std::string& what) {
  return {ErrorCode::kCorrupt, fmt::format("'{}': {}", uri.shown(), what)};
}

// Whether a request for a byte may be answered where one for the head is not.
bool refuses_head(int status) {
  return status == 400 || status == 403 || status == 405 || status == 501;
}

class HttpOrigin : public Origin {
 public:
  explicit HttpOrigin(RemoteUri uri) : uri_(std::move(uri)) {}

  const RemoteUri& uri() const override { return uri_; }

  Result<FileFacts> look(HttpClient& client, RemoteAnswer& answer) const override {
    HttpRequest head = plain_request();
    head.only_head = true;
    SPEEDO_TRY(client.perform(head, answer));
    // Some say 0 of what they have not made yet.
    if (answer.is_success() && answer.length().value_or(0) > 0) {
      return FileFacts{.bytes = *answer.length(),
                       .version = version_of(answer),
                       .has_ranges = answer.header("accept-ranges") == "bytes"};
    }
    if (answer.is_success() || refuses_head(answer.status)) return look_at_byte(client, answer);
    return status_error(uri_, answer);
  }

  HttpRequest request(ByteSpan span, const FileFacts& facts) const override {
    HttpRequest request = plain_request();
    if (facts.has_ranges && span.bytes() > 0) request.range = range_text(span);
    return request;
  }

  Result<void> check(const RemoteAnswer& answer, ByteSpan span,
                     const FileFacts& facts) const override {
    return check_range(uri_, answer, span, facts);
  }

 private:
  HttpRequest plain_request() const { return {.url = uri_.text(), .shown = uri_.shown()}; }

  Result<FileFacts> look_at_byte(HttpClient& client, RemoteAnswer& answer) const {
    HttpRequest byte = plain_request();
    byte.range = "0-0";
    const Error enough{ErrorCode::kInternal, ""};  // ends a transfer of more than the byte
    auto done = client.perform(byte, answer, [&](const RemoteAnswer& got, auto) -> Result<void> {
      if (got.status == kPartialContent) return {};
      return enough;
    });
    const bool cut = !done && done.error().code == ErrorCode::kInternal;
    if (!done && !cut) return std::move(done).error();
    const auto range = parse_content_range(answer.header("content-range"));
    if (answer.status == kRangeNotSatisfiable && range && range->total == 0) return FileFacts{};
    if (!answer.is_success()) return status_error(uri_, answer);
    if (answer.status == kPartialContent && range && range->total) {
      return FileFacts{.bytes = *range->total, .version = version_of(answer), .has_ranges = true};
    }
    if (answer.status != kPartialContent && answer.length()) {
      return FileFacts{.bytes = *answer.length(), .version = version_of(answer)};
    }
    return Error{ErrorCode::kData,
                 fmt::format("'{}': the server does not say how many bytes the file has, so nobody "
                             "could tell whether all have come: serve it as a plain file",
                             uri_.shown())};
  }

  const RemoteUri uri_;
};

// What a server that refuses a request wants.
std::string remedy_for(const RemoteUri& uri, const RemoteAnswer& answer) {
  if (uri.scheme == UriScheme::kS3) {
    return "AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or ~/.aws/credentials, must be of one who "
           "may read it; S3 also answers so for a key that does not exist";
  }
  if (uri.scheme == UriScheme::kHdfs) {
    return answer.status == 401 ? "the cluster wants Kerberos, which is not supported"
                                : "HADOOP_USER_NAME must be of one who may read it";
  }
  return "a name and password go into ~/.netrc";
}

// <Code> of what S3 answers; "exception" of WebHDFS is in the text as it is.
std::string reason_in(const std::string& body) {
  const std::size_t begin = body.find("<Code>"), end = body.find("</Code>");
  if (begin == std::string::npos || end == std::string::npos || end < begin) return {};
  std::string code = body.substr(begin + 6, end - begin - 6);
  constexpr std::size_t kCodeBytesMax = 60;
  code.resize(std::min(code.size(), kCodeBytesMax));
  std::erase_if(code, [](unsigned char letter) { return std::isalnum(letter) == 0; });
  return ", " + code;
}

// No encoding is asked for. A file that is compressed itself some servers call an encoded one.
Result<void> check_encoding(const RemoteUri& uri, const RemoteAnswer& answer) {
  const std::string encoding = lower_case(answer.header("content-encoding"));
  const bool is_gzip = encoding == "gzip" || encoding == "x-gzip";
  if (is_gzip && (uri.path.ends_with(".gz") || uri.path.ends_with(".tgz"))) return {};
  const auto names = [&](const char* each) { return encoding.find(each) != std::string::npos; };
  if (std::ranges::none_of(std::initializer_list<const char*>{"gzip", "br", "deflate", "zstd"},
                           names)) {
    return {};
  }
  return Error{ErrorCode::kData,
               fmt::format("'{}': the server sends the file compressed (Content-Encoding: {}), "
                           "which was not asked for: serve it as it is",
                           uri.shown(), encoding)};
}

}  // namespace

std::unique_ptr<Origin> make_http_origin(const RemoteUri& uri) {
  return std::make_unique<HttpOrigin>(uri);
}

Error status_error(const RemoteUri& uri, const RemoteAnswer& answer) {
  const auto error = [&](ErrorCode code, const std::string& what) {
    return Error{code, fmt::format("'{}': {} (the server answers {}{})", uri.shown(), what,
                                   answer.status, reason_in(answer.error_body))};
  };
  const int status = answer.status;
  if (status == 404 || status == 410) {
    return error(ErrorCode::kNotFound, "does not exist: correct the name, or put the file there");
  }
  if (status == 401 || status == 403 || status == 407) {
    return error(ErrorCode::kRefused, "may not be read: " + remedy_for(uri, answer));
  }
  if (status == 408) return error(ErrorCode::kTimeout, "the server has waited too long");
  if (status == 429) return error(ErrorCode::kUnavailable, "the server has too many requests");
  if (status >= 500) return error(ErrorCode::kUnavailable, "the server has a fault");
  if (status >= 300 && status < 400) {
    const std::string region = answer.header("x-amz-bucket-region");
    return error(ErrorCode::kRefused, region.empty()
                                          ? "lies elsewhere"
                                          : "lies in another region: set AWS_REGION to " + region);
  }
  if (status == kRangeNotSatisfiable) {
    return error(ErrorCode::kCorrupt, "the server does not have the bytes that it promised");
  }
  if (status >= 400) return error(ErrorCode::kData, "the server refuses the request");
  return error(ErrorCode::kCorrupt, "the server gives no answer that HTTP knows");
}

std::string range_text(ByteSpan span) { return fmt::format("{}-{}", span.begin, span.end - 1); }

// Without the mark of a weak one, which what stands between may put there and take away.
std::string version_of(const RemoteAnswer& answer) {
  constexpr std::string_view kWeak = "W/";
  const std::string tag = answer.header("etag");
  if (tag.starts_with(kWeak)) return tag.substr(kWeak.size());
  return tag.empty() ? answer.header("last-modified") : tag;
}

Result<void> check_range(const RemoteUri& uri, const RemoteAnswer& answer, ByteSpan span,
                         const FileFacts& facts) {
  SPEEDO_TRY(check_encoding(uri, answer));
  if (!facts.version.empty() && version_of(answer) != facts.version) {
    return Error{ErrorCode::kMismatch,
                 fmt::format("'{}': the file has changed meanwhile", uri.shown())};
  }
  if (answer.status == kPartialContent) {
    const auto range = parse_content_range(answer.header("content-range"));
    if (range && range->span == span && range->total.value_or(facts.bytes) == facts.bytes) {
      return {};
    }
    return broken_promise(
        uri, fmt::format("bytes {} were asked for, but the server sends '{}' of "
                         "{} bytes",
                         range_text(span), answer.header("content-range"), facts.bytes));
  }
  if (answer.status != 200) {
    return broken_promise(uri, fmt::format("the server answers {} to a GET", answer.status));
  }
  if (span != ByteSpan{0, facts.bytes}) {
    return broken_promise(
        uri, fmt::format("bytes {} were asked for, but the server sends all", range_text(span)));
  }
  if (answer.length().value_or(facts.bytes) == facts.bytes) return {};
  return broken_promise(uri, fmt::format("the server announces {} bytes, but has promised {}",
                                         answer.header("content-length"), facts.bytes));
}

}  // namespace speedo
