#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

#include "cli/http_address.hpp"

namespace speedo {

struct HttpAnswer {
  int status = 200;
  std::string type = "text/plain; charset=utf-8";
  std::string body;
};

// Serves GET and HEAD to 64 clients at once; a request that takes longer than two seconds, is
// longer than 8 KiB or is of another method is refused. More clients wait for one of those to end,
// so who holds that many connections open, again and again, keeps all others from an answer. Reads
// nothing from disk.
// Thread safety: `answer` is called from several threads at once.
class HttpServer {
 public:
  // Nothing: there is no such page.
  using Answer = std::function<std::optional<HttpAnswer>(std::string_view path)>;
  // Errors: kUnavailable if it cannot listen there, saying why; kUsage for an IPv6 address if the
  // CivetWeb of this build has none.
  static Result<std::unique_ptr<HttpServer>> start(const HttpAddress& address, Answer answer);
  // Waits for answers under way.
  ~HttpServer();

  // "http://host:port".
  const std::string& url() const { return url_; }

 private:
  struct Running;
  HttpServer(std::unique_ptr<Running> running, std::string url);

  std::unique_ptr<Running> running_;
  std::string url_;
};

}  // namespace speedo
