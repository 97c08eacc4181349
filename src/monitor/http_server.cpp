#include "monitor/http_server.hpp"

#include <array>
#include <exception>
#include <mutex>
#include <utility>

#include <civetweb.h>
#include <fmt/format.h>

namespace speedo {
namespace {

// More than the connections that idle clients hold open at once: each keeps a thread until its time
// is over.
constexpr const char* kThreads = "64";
constexpr const char* kRequestTimeoutMs = "2000";
constexpr const char* kRequestBytesMax = "8192";

const char* reason_of(int status) {
  switch (status) {
    case 200: return "OK";
    case 404: return "Not Found";
    case 405: return "Method Not Allowed";
    case 503: return "Service Unavailable";
    default: return "Internal Server Error";
  }
}

HttpAnswer answer_to(const mg_request_info& request, const HttpServer::Answer& answer) {
  const std::string_view method = request.request_method;
  if (method != "GET" && method != "HEAD") {
    return {405, "text/plain; charset=utf-8", "only GET and HEAD\n"};
  }
  try {
    auto found = answer(request.local_uri);
    if (found) return std::move(*found);
    return {404, "text/plain; charset=utf-8", "no such page; see /\n"};
  } catch (const std::exception& exception) {
    return {500, "text/plain; charset=utf-8", std::string(exception.what()) + "\n"};
  }
}

int handle(mg_connection* connection, void* data) {
  const auto& answer = *static_cast<const HttpServer::Answer*>(data);
  const mg_request_info& request = *mg_get_request_info(connection);
  const HttpAnswer found = answer_to(request, answer);
  const std::string head = fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\nCache-Control: no-store\r\n"
      "X-Content-Type-Options: nosniff\r\nContent-Security-Policy: default-src 'none'; "
      "script-src 'unsafe-inline'; style-src 'unsafe-inline'; connect-src 'self'\r\n"
      "Connection: close\r\n{}\r\n",
      found.status, reason_of(found.status), found.type, found.body.size(),
      found.status == 405 ? "Allow: GET, HEAD\r\n" : "");
  mg_write(connection, head.data(), head.size());
  const bool is_head = std::string_view(request.request_method) == "HEAD";
  if (!is_head) mg_write(connection, found.body.data(), found.body.size());
  return found.status;
}

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : "[" + host + "]";
}

// The library counts its users.
void init_library_once() {
  static std::once_flag once;
  std::call_once(once, [] { mg_init_library(0); });
}

}  // namespace

struct HttpServer::Running {
  Answer answer;
  mg_callbacks callbacks{};
  mg_context* context = nullptr;
  ~Running() {
    if (context != nullptr) mg_stop(context);
  }
};

HttpServer::HttpServer(std::unique_ptr<Running> running, std::string url)
    : running_(std::move(running)), url_(std::move(url)) {}

HttpServer::~HttpServer() = default;

Result<std::unique_ptr<HttpServer>> HttpServer::start(const HttpAddress& address, Answer answer) {
  init_library_once();
  if (address.host.find(':') != std::string::npos && mg_check_feature(MG_FEATURES_IPV6) == 0) {
    return usage_error(fmt::format("--metrics-addr {}:{}: the CivetWeb of this build has no IPv6: "
                                   "give an IPv4 address", bracketed(address.host), address.port));
  }
  auto running = std::make_unique<Running>();
  running->answer = std::move(answer);
  const std::string listen = fmt::format("{}:{}", bracketed(address.host), address.port);
  const char* options[] = {"listening_ports", listen.c_str(), "num_threads", kThreads,
                           "request_timeout_ms", kRequestTimeoutMs, "max_request_size",
                           kRequestBytesMax, "enable_keep_alive", "no", nullptr};
  std::array<char, 256> why{};
  unsigned code = 0;
  mg_init_data init{&running->callbacks, nullptr, static_cast<const char**>(options)};
  mg_error_data error{&code, why.data(), why.size()};
  running->context = mg_start2(&init, &error);
  if (running->context == nullptr) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("--metrics-addr {}: cannot listen there ({}); is the port in use, or "
                             "the address another machine's? Give another one, or port 0 for any "
                             "free one", listen, why.data())};
  }
  mg_set_request_handler(running->context, "/**", handle, &running->answer);
  mg_server_port port{};
  mg_get_server_ports(running->context, 1, &port);
  std::string url = fmt::format("http://{}:{}", bracketed(address.host), port.port);
  return std::unique_ptr<HttpServer>(new HttpServer(std::move(running), std::move(url)));
}

}  // namespace speedo
