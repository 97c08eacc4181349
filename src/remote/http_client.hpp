#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/base/secret.hpp>

#include "remote/remote_terms.hpp"

namespace speedo {

// Whom requests are signed for, by AWS' Signature Version 4.
struct AwsIdentity {
  std::string key_id;
  Secret secret, session_token;  // the token may be empty
  std::string region;
};

struct HttpRequest {
  std::string url;
  std::string shown;  // what messages call it: without secrets
  bool only_head = false;
  std::string range = {};  // "0-99", or empty
  std::vector<std::string> headers = {};
  std::optional<AwsIdentity> signed_by = {};
  bool follows_redirects = true;
};

// What an answer says before its body; after redirects, the last one's.
struct RemoteAnswer {
  int status = 0;
  std::map<std::string, std::string> headers = {};  // by names in small letters
  std::string error_body = {};  // of an answer that is no success, its beginning

  std::string header(const std::string& name) const;  // empty: it has none
  std::optional<std::uint64_t> length() const;        // Content-Length, if that is a number
  std::chrono::milliseconds retry_after() const;      // 0: it does not say
  bool is_success() const { return status >= 200 && status < 300; }
};

// One connection to a server at a time, which is kept for the next request.
// Thread safety: one thread at a time.
class HttpClient {
 public:
  // A piece of a successful answer's body. An error ends the transfer and is perform()'s.
  using TakeBody =
      std::function<Result<void>(const RemoteAnswer& answer, std::span<const std::byte> piece)>;

  // The terms must outlive it.
  static Result<std::unique_ptr<HttpClient>> create(const RemoteTerms& terms);
  ~HttpClient();

  // The answer, whatever its status, once its body has come whole. Redirects are followed, at most
  // five, and never from https to http. Errors: kUnavailable, kTimeout (a retry can help; `answer`
  // tells what had come); kRefused if the server's certificate is not one, or for a redirect;
  // kCorrupt for what is not HTTP; those of `take`.
  Result<void> perform(const HttpRequest& request, RemoteAnswer& answer, const TakeBody& take = {});

 private:
  class Exchange;
  explicit HttpClient(const RemoteTerms& terms, void* handle) : terms_(terms), handle_(handle) {}

  const RemoteTerms& terms_;
  void* handle_;  // libcurl's
};

}  // namespace speedo
