#include <algorithm>
#include <charconv>
#include <string_view>

#include <fmt/format.h>

#include "actors/node.hpp"

namespace speedo {
namespace {

constexpr std::string_view kScheme = "speedo://", kAkkaScheme = "akka.tcp://";
constexpr std::string_view kForms =
    "use host:port, speedo://host:port or akka.tcp://SpeeDO@host:port/user/host";

// Before an '@' may stand a name and a password, as in other addresses: they are in no message.
std::string without_user(std::string_view text) {
  const std::size_t at = text.rfind('@');
  if (at == std::string_view::npos) return std::string(text);
  std::string_view scheme;
  for (const std::string_view known : {kScheme, kAkkaScheme}) {
    if (text.starts_with(known)) scheme = known;
  }
  return fmt::format("{}...{}", scheme, text.substr(at));
}

Error bad_address(const std::string& text, std::string_view why) {
  return Error{ErrorCode::kUsage,
               fmt::format("master address '{}': {}; {}", without_user(text), why, kForms)};
}

// What is left of `text` without `prefix`; false if it does not begin so.
bool take_prefix(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool is_host(std::string_view host) {
  constexpr std::string_view kForbidden = " \t\r\n/@:[]?#";
  return !host.empty() && host.find_first_of(kForbidden) == std::string_view::npos;
}

// An IPv6 address stands in brackets; behind a '%' the interface of a link-local one.
bool is_bracketed_host(std::string_view host) {
  constexpr std::string_view kAllowed = "0123456789abcdefABCDEF:.";
  if (host.size() <= 4 || host.front() != '[' || host.back() != ']') return false;
  host = host.substr(1, host.size() - 2);
  const std::size_t percent = std::min(host.find('%'), host.size());
  const bool is_scoped = percent < host.size();
  return host.substr(0, percent).find_first_not_of(kAllowed) == std::string_view::npos &&
         (!is_scoped || is_host(host.substr(percent + 1)));
}

}  // namespace

Result<Address> parse_address(const std::string& text) {
  std::string_view rest = text;
  if (take_prefix(rest, kAkkaScheme)) {
    const std::size_t at = rest.find('@');
    if (at == std::string_view::npos) return bad_address(text, "no '@' before the host");
    rest.remove_prefix(at + 1);
    rest = rest.substr(0, rest.find('/'));
  } else if (take_prefix(rest, kScheme)) {
    if (rest.ends_with('/')) rest.remove_suffix(1);
  }
  const std::size_t colon = rest.rfind(':');
  if (colon == std::string_view::npos) return bad_address(text, "no port");
  std::string_view host = rest.substr(0, colon);
  const std::string_view port = rest.substr(colon + 1);
  if (is_bracketed_host(host)) {
    host = host.substr(1, host.size() - 2);
  } else if (!is_host(host)) {
    return bad_address(text, "no host name");
  }
  std::uint16_t number = 0;
  const auto [end, fault] = std::from_chars(port.data(), port.data() + port.size(), number);
  if (fault != std::errc() || end != port.data() + port.size() || number == 0) {
    return bad_address(text, fmt::format("'{}' is not a port from 1 to 65535", without_user(port)));
  }
  return Address{.host = std::string(host), .port = number};
}

}  // namespace speedo
