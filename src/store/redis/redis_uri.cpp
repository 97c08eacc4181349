#include <charconv>
#include <optional>
#include <string_view>

#include <speedo/store/redis_store.hpp>

namespace speedo {
namespace {

constexpr int kPortMax = 65535;
constexpr int kDatabaseMax = 1 << 20;

// Never shows what stands before '@': it may be a password.
Error bad_uri(const std::string& uri, const std::string& what) {
  const std::size_t at = uri.rfind('@');
  const std::string shown = at == std::string::npos ? uri : "..." + uri.substr(at);
  return Error{ErrorCode::kUsage,
               "Redis address '" + shown + "': " + what +
                   "; use HOST, HOST:PORT, redis://[[USER]:PASSWORD@]HOST[:PORT][/DB] or "
                   "unix:///PATH"};
}

std::optional<int> parse_number(std::string_view text, int max) {
  int value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0 || value > max) {
    return std::nullopt;
  }
  return value;
}

std::optional<std::string> percent_decode(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      decoded += text[i];
      continue;
    }
    int byte = 0;
    if (i + 2 >= text.size()) return std::nullopt;
    const auto [end, error] = std::from_chars(&text[i + 1], &text[i + 1] + 2, byte, 16);
    if (error != std::errc() || end != &text[i + 1] + 2) return std::nullopt;
    decoded += static_cast<char>(byte);
    i += 2;
  }
  return decoded;
}

// Takes "[[USER]:PASSWORD@]" off `rest`. Error: a bare message.
std::optional<std::string> take_user(std::string_view& rest, RedisOptions& options) {
  const std::size_t at = rest.rfind('@');
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view both = rest.substr(0, at);
  rest = rest.substr(at + 1);
  const std::size_t colon = both.find(':');
  if (colon == std::string_view::npos) return "no ':' between user and password";
  const auto user = percent_decode(both.substr(0, colon));
  const auto password = percent_decode(both.substr(colon + 1));
  if (!user || !password) return "a '%' without two hexadecimal digits (write '%' as %25)";
  options.user = *user;
  options.password = *password;
  return std::nullopt;
}

std::optional<std::string> take_host(std::string_view text, RedisOptions& options) {
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return "no ']' after the IPv6 address";
    options.host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && rest[0] != ':') return "something other than a port after ']'";
    port = rest.empty() ? rest : rest.substr(1);
    if (!rest.empty() && port.empty()) return "no port after ':'";
  } else {
    const std::size_t colon = text.find(':');
    options.host = text.substr(0, colon);
    if (colon != std::string_view::npos) {
      port = text.substr(colon + 1);
      if (port.empty()) return "no port after ':'";
    }
  }
  if (options.host.empty()) return "no host";
  if (options.host.find_first_of(" \t/?#@") != std::string::npos) return "not a host name";
  if (port.empty()) return std::nullopt;
  const auto number = parse_number(port, kPortMax);
  if (!number || *number == 0) return "port '" + std::string(port) + "' is not 1 to 65535";
  options.port = *number;
  return std::nullopt;
}

std::optional<std::string> take_database(std::string_view text, RedisOptions& options) {
  if (text.empty()) return std::nullopt;
  const auto number = parse_number(text, kDatabaseMax);
  if (!number) return "database '" + std::string(text) + "' is not a number";
  options.db = *number;
  return std::nullopt;
}

std::optional<std::string> parse_unix(std::string_view rest, RedisOptions& options) {
  if (auto fault = take_user(rest, options)) return fault;
  if (const std::size_t query = rest.find('?'); query != std::string_view::npos) {
    const std::string_view option = rest.substr(query + 1);
    if (!option.starts_with("db=")) return "unknown option '" + std::string(option) + "'";
    if (auto fault = take_database(option.substr(3), options)) return fault;
    rest = rest.substr(0, query);
  }
  if (!rest.starts_with('/')) return "the socket's path must begin with '/'";
  options.unix_path = rest;
  return std::nullopt;
}

std::optional<std::string> parse_tcp(std::string_view rest, RedisOptions& options) {
  if (auto fault = take_user(rest, options)) return fault;
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    if (auto fault = take_database(rest.substr(slash + 1), options)) return fault;
  }
  return take_host(rest.substr(0, slash), options);
}

}  // namespace

Result<RedisOptions> parse_redis_uri(const std::string& uri) {
  constexpr std::string_view kUnix = "unix://";
  constexpr std::string_view kTcp = "redis://";
  const std::string_view text = uri;
  if (text.starts_with("rediss://")) {
    return Error{ErrorCode::kUnsupported,
                 "Redis over TLS (rediss://) is not built in: run stunnel on this host with "
                 "'accept = 127.0.0.1:6379' and 'connect' set to the server, and give "
                 "redis://127.0.0.1:6379"};
  }
  RedisOptions options;
  std::optional<std::string> fault;
  if (text.starts_with(kUnix)) {
    fault = parse_unix(text.substr(kUnix.size()), options);
  } else if (text.starts_with(kTcp)) {
    fault = parse_tcp(text.substr(kTcp.size()), options);
  } else if (text.find("://") != std::string_view::npos) {
    fault = "unknown scheme";
  } else {
    fault = take_host(text, options);
  }
  if (fault) return bad_uri(uri, *fault);
  return options;
}

std::string to_string(const RedisOptions& options) {
  if (!options.unix_path.empty()) return "unix://" + options.unix_path;
  const bool v6 = options.host.find(':') != std::string::npos;
  return (v6 ? "[" + options.host + "]" : options.host) + ":" + std::to_string(options.port);
}

}  // namespace speedo
