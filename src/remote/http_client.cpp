#include "remote/http_client.hpp"

#include <cstdlib>
#include <mutex>
#include <string_view>
#include <utility>

#include <curl/curl.h>
#include <fmt/format.h>

#include "base/parse_number.hpp"
#include "base/text_of.hpp"
#include "base/trimmed.hpp"
#include "remote/lower_case.hpp"

namespace speedo {

namespace {

constexpr long kRedirectsMax = 5;
constexpr std::size_t kHeadersMax = 200;  // servers send some twenty
constexpr std::size_t kHeaderBytesMax = std::size_t{128} << 10U;
constexpr std::size_t kErrorBodyBytesMax = 4096;  // what is looked at
// The digest of no bytes: a GET has no body, and S3 wants that signed.
constexpr const char* kEmptyBodyDigest =
    "x-amz-content-sha256: e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// A list of headers as libcurl takes it.
class HeaderList {
 public:
  HeaderList() = default;
  ~HeaderList() { curl_slist_free_all(list_); }
  HeaderList(const HeaderList&) = delete;
  HeaderList& operator=(const HeaderList&) = delete;
  void add(const std::string& header) {
    if (curl_slist* const longer = curl_slist_append(list_, header.c_str())) list_ = longer;
  }
  curl_slist* get() const { return list_; }

 private:
  curl_slist* list_ = nullptr;
};

// libcurl does not look at the variables that curl, the program, looks at.
std::string authority_of(const RemoteTerms& terms) {
  if (!terms.authority_file.empty()) return terms.authority_file;
  for (const char* name : {"CURL_CA_BUNDLE", "SSL_CERT_FILE"}) {
    const char* const file = std::getenv(name);
    if (file != nullptr && *file != '\0') return file;
  }
  return {};
}

}  // namespace

std::string RemoteAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

std::optional<std::uint64_t> RemoteAnswer::length() const {
  return parse_number<std::uint64_t>(header("content-length"));
}

std::chrono::milliseconds RemoteAnswer::retry_after() const {
  constexpr std::int64_t kSecondsMax = 3600;
  const auto seconds = parse_number<std::int64_t>(header("retry-after"));
  return std::chrono::seconds(std::clamp<std::int64_t>(seconds.value_or(0), 0, kSecondsMax));
}

// What libcurl calls while a request runs.
class HttpClient::Exchange {
 public:
  Exchange(const RemoteTerms& terms, RemoteAnswer& answer, const TakeBody& take)
      : terms_(terms), answer_(answer), take_(take) {}

  static std::size_t on_header(char* text, std::size_t, std::size_t bytes, void* self) {
    return static_cast<Exchange*>(self)->add_header({text, bytes}) ? bytes : 0;
  }
  static std::size_t on_body(char* data, std::size_t, std::size_t bytes, void* self) {
    const auto piece = std::as_bytes(std::span<const char>(data, bytes));
    return static_cast<Exchange*>(self)->add_body(piece) ? bytes : CURL_WRITEFUNC_ERROR;
  }
  static int on_progress(void* self, curl_off_t, curl_off_t, curl_off_t, curl_off_t) {
    const auto& terms = static_cast<Exchange*>(self)->terms_;
    return terms.stopped && terms.stopped() ? 1 : 0;
  }

  std::optional<Error>& failure() { return failure_; }

 private:
  bool add_header(std::string_view line) {
    header_bytes_ += line.size();
    if (header_bytes_ > kHeaderBytesMax) {
      failure_ = Error{ErrorCode::kCorrupt, "the server sends headers without end"};
      return false;
    }
    if (line.starts_with("HTTP/")) {  // also after a redirect
      answer_.headers.clear();
      const std::size_t blank = line.find(' ');
      const std::string_view status =
          blank == std::string_view::npos ? std::string_view() : line.substr(blank + 1, 3);
      answer_.status = parse_number<int>(status).value_or(0);
      return true;
    }
    const std::size_t colon = line.find(':');
    if (colon == std::string_view::npos || answer_.headers.size() >= kHeadersMax) {
      return true;
    }
    const std::string name = lower_case(std::string(line.substr(0, colon)));
    answer_.headers[name] = trimmed(line.substr(colon + 1), " \t\r\n");
    return true;
  }

  bool add_body(std::span<const std::byte> piece) {
    if (!answer_.is_success()) {
      const std::size_t room = kErrorBodyBytesMax - answer_.error_body.size();
      answer_.error_body += text_of(piece).substr(0, room);
      // The rest is not worth its transfer: what ends it is no failure.
      return answer_.error_body.size() < kErrorBodyBytesMax;
    }
    if (!take_) return true;
    auto taken = take_(answer_, piece);
    if (taken) return true;
    failure_ = std::move(taken).error();
    return false;
  }

  const RemoteTerms& terms_;
  RemoteAnswer& answer_;
  const TakeBody& take_;
  std::size_t header_bytes_ = 0;
  std::optional<Error> failure_;
};

namespace {

// What a failure of libcurl means for who asked.
// `status`: of the answer that had begun, or 0.
Error transfer_error(CURLcode code, const HttpRequest& request, int status,
                     const std::string& detail) {
  const auto error = [&](ErrorCode kind, const std::string& what) {
    return Error{kind, fmt::format("'{}': {}", request.shown, what)};
  };
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return error(ErrorCode::kTimeout, "the server does not answer in time (" + detail + ")");
    case CURLE_PEER_FAILED_VERIFICATION:
    case CURLE_SSL_ISSUER_ERROR:
      return error(ErrorCode::kRefused,
                   "the server's certificate is not accepted (" + detail +
                       "): give its authority's certificate with --data-ca or SSL_CERT_FILE");
    case CURLE_SSL_CACERT_BADFILE:
      return error(ErrorCode::kUsage, "the authority's certificates cannot be read: " + detail);
    case CURLE_UNSUPPORTED_PROTOCOL:
      if (status == 0) return error(ErrorCode::kCorrupt, "the server does not speak HTTP");
      return error(ErrorCode::kRefused,
                   "the server redirects to where it is not followed, such as from https to http");
    case CURLE_TOO_MANY_REDIRECTS:
      return error(ErrorCode::kRefused, fmt::format("more than {} redirects", kRedirectsMax));
    case CURLE_WEIRD_SERVER_REPLY:
      return error(ErrorCode::kCorrupt, "the server does not speak HTTP (" + detail + ")");
    case CURLE_URL_MALFORMAT:
      return error(ErrorCode::kUsage, "cannot be asked for: " + detail);
    case CURLE_ABORTED_BY_CALLBACK:
      return error(ErrorCode::kUnavailable, "the transfer was ended by a signal");
    case CURLE_OUT_OF_MEMORY:
      return error(ErrorCode::kFull, "no memory is left for the transfer");
    default:
      return error(ErrorCode::kUnavailable, detail);
  }
}

void set_terms(CURL* curl, const RemoteTerms& terms) {
  curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(curl, CURLOPT_USERAGENT, "speedo");
  curl_easy_setopt(curl, CURLOPT_CONNECTTIMEOUT_MS,
                   static_cast<long>(terms.connect_timeout.count()));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_LIMIT, static_cast<long>(terms.stalled_bytes_a_second));
  curl_easy_setopt(curl, CURLOPT_LOW_SPEED_TIME, static_cast<long>(terms.stalled_for.count()));
  if (const std::string authority = authority_of(terms); !authority.empty()) {
    curl_easy_setopt(curl, CURLOPT_CAINFO, authority.c_str());
  }
}

void set_request(CURL* curl, const HttpRequest& request, HeaderList& headers) {
  const bool is_secure = request.url.starts_with("https:");
  curl_easy_setopt(curl, CURLOPT_URL, request.url.c_str());
  curl_easy_setopt(curl, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(curl, CURLOPT_PROTOCOLS_STR, is_secure ? "https" : "http");
  curl_easy_setopt(curl, CURLOPT_REDIR_PROTOCOLS_STR, is_secure ? "https" : "http,https");
  curl_easy_setopt(curl, CURLOPT_FOLLOWLOCATION, request.follows_redirects ? 1L : 0L);
  curl_easy_setopt(curl, CURLOPT_MAXREDIRS, kRedirectsMax);
  if (request.only_head) curl_easy_setopt(curl, CURLOPT_NOBODY, 1L);
  if (!request.range.empty()) curl_easy_setopt(curl, CURLOPT_RANGE, request.range.c_str());
  for (const std::string& header : request.headers) headers.add(header);
  if (const auto& signer = request.signed_by) {
    curl_easy_setopt(curl, CURLOPT_AWS_SIGV4, ("aws:amz:" + signer->region + ":s3").c_str());
    curl_easy_setopt(curl, CURLOPT_USERNAME, signer->key_id.c_str());
    curl_easy_setopt(curl, CURLOPT_PASSWORD, std::string(signer->secret.reveal()).c_str());
    headers.add(kEmptyBodyDigest);
    if (!signer->session_token.empty()) {
      headers.add("x-amz-security-token: " + std::string(signer->session_token.reveal()));
    }
  } else {
    curl_easy_setopt(curl, CURLOPT_NETRC, static_cast<long>(CURL_NETRC_OPTIONAL));
  }
  if (headers.get() != nullptr) curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers.get());
}

}  // namespace

Result<std::unique_ptr<HttpClient>> HttpClient::create(const RemoteTerms& terms) {
  static std::once_flag once;
  std::call_once(once, [] { curl_global_init(CURL_GLOBAL_DEFAULT); });
  CURL* const handle = curl_easy_init();
  if (handle == nullptr) return Error{ErrorCode::kFull, "no memory is left for a connection"};
  return std::unique_ptr<HttpClient>(new HttpClient(terms, handle));
}

HttpClient::~HttpClient() { curl_easy_cleanup(handle_); }

Result<void> HttpClient::perform(const HttpRequest& request, RemoteAnswer& answer,
                                 const TakeBody& take) {
  answer = {};
  auto* const curl = static_cast<CURL*>(handle_);
  curl_easy_reset(curl);  // Connections stay.
  HeaderList headers;
  Exchange exchange(terms_, answer, take);
  char detail[CURL_ERROR_SIZE] = "";
  set_terms(curl, terms_);
  set_request(curl, request, headers);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, detail);
  curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, &Exchange::on_header);
  curl_easy_setopt(curl, CURLOPT_HEADERDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, &Exchange::on_body);
  curl_easy_setopt(curl, CURLOPT_WRITEDATA, &exchange);
  curl_easy_setopt(curl, CURLOPT_NOPROGRESS, 0L);
  curl_easy_setopt(curl, CURLOPT_XFERINFOFUNCTION, &Exchange::on_progress);
  curl_easy_setopt(curl, CURLOPT_XFERINFODATA, &exchange);
  const CURLcode code = curl_easy_perform(curl);
  curl_easy_setopt(curl, CURLOPT_ERRORBUFFER, nullptr);
  if (code == CURLE_OK) return {};
  if (exchange.failure()) return *std::move(exchange.failure());
  if (code == CURLE_WRITE_ERROR) return {};  // The body of an error was long.
  return transfer_error(code, request, answer.status,
                        detail[0] != '\0' ? detail : curl_easy_strerror(code));
}

}  // namespace speedo
