#include "cli/http_address.hpp"

#include <string_view>

#include <arpa/inet.h>
#include <netinet/in.h>

#include "base/bare_host.hpp"
#include "base/parse_number.hpp"

namespace speedo {
namespace {

bool is_ip_address(int family, const std::string& text) {
  in6_addr address{};  // the larger one
  return ::inet_pton(family, text.c_str(), &address) == 1;
}

// A name whose last part is a number would be taken for an address.
bool is_name_of_host(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789";
  constexpr std::string_view kLetters =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-._";
  if (text.empty() || text.find_first_not_of(kLetters) != std::string_view::npos) return false;
  if (text.front() == '-' || text.front() == '.') return false;
  const std::string_view last = text.substr(text.rfind('.') + 1);
  return last.find_first_not_of(kDigits) != std::string_view::npos;
}

bool is_listenable(const std::string& host) {
  const std::string bare = bare_host(host);
  if (bare != host) return is_ip_address(AF_INET6, bare);
  return host.empty() || is_ip_address(AF_INET, host) || is_name_of_host(host);
}

}  // namespace

Result<HttpAddress> parse_http_address(const std::string& text) {
  const std::size_t colon = text.rfind(':');
  const std::string host = colon == std::string::npos ? "" : text.substr(0, colon);
  const auto port = parse_number<std::uint16_t>(
      colon == std::string::npos ? text : text.substr(colon + 1));
  if (is_ip_address(AF_INET6, host)) {
    return usage_error("--metrics-addr " + text + ": an IPv6 address is written [ADDRESS]:PORT");
  }
  if (!port || !is_listenable(host)) {
    return usage_error("--metrics-addr " + text +
                       ": expected one HOST:PORT or PORT, such as 127.0.0.1:9464 (HOST: an IP "
                       "address or a name; another than 127.0.0.1 lets others look, too)");
  }
  return HttpAddress{host.empty() ? "127.0.0.1" : bare_host(host), *port};
}

}  // namespace speedo
