#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>

#include <speedo/base/limits.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/store/redis_store.hpp>
#include <speedo/store/store_address.hpp>

#include "base/parse_number.hpp"

namespace speedo {
namespace {

constexpr int kDatabaseMax = 1 << 20;
constexpr std::string_view kTlsScheme = "rediss://";
constexpr std::string_view kClusterScheme = "redis-cluster://";
constexpr std::string_view kTlsClusterScheme = "rediss-cluster://";

constexpr std::string_view kSentinelScheme = "redis-sentinel://";
constexpr std::string_view kTlsSentinelScheme = "rediss-sentinel://";

bool is_sentinel_scheme(std::string_view scheme) {
  return scheme == kSentinelScheme || scheme == kTlsSentinelScheme;
}

bool is_cluster_scheme(std::string_view scheme) {
  return scheme == kClusterScheme || scheme == kTlsClusterScheme;
}


Error bad_uri(std::string_view uri, const std::string& what) {
  return Error{ErrorCode::kUsage, "Redis address '" + redacted(uri) + "': " + what +
                                      "; use HOST, HOST:PORT, redis://[USER@]HOST[:PORT][/DB], "
                                      "unix://[USER@]/PATH[?db=N] or "
                                      "redis-cluster://[USER@]HOST[:PORT][,HOST[:PORT]]... or "
                                      "redis-sentinel://[USER@]HOST[:PORT][,HOST[:PORT]].../NAME; "
                                      "by TLS they begin with rediss"};
}

// Writes the decoded text to `out`, which has room for all of `text`, and returns its length.
Result<std::size_t> percent_decode(std::string_view text, char* out) {
  std::size_t size = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out[size++] = text[i];
      continue;
    }
    unsigned byte = 0;
    const char* const first = text.data() + i + 1;
    const bool two = i + 2 < text.size();
    if (!two || std::from_chars(first, first + 2, byte, 16).ptr != first + 2) {
      return Error{ErrorCode::kUsage,
                   "the user or password in a Redis address has a '%' without two hexadecimal "
                   "digits (write '%' as %25)"};
    }
    out[size++] = static_cast<char>(byte);
    i += 2;
  }
  return size;
}

std::optional<const char*> take_host(std::string_view text, RedisAddress& address) {
  std::string_view port;
  if (text.starts_with('[')) {
    const std::size_t close = text.find(']');
    if (close == std::string_view::npos) return "no ']' after the IPv6 address";
    address.host = text.substr(1, close - 1);
    const std::string_view rest = text.substr(close + 1);
    if (!rest.empty() && rest[0] != ':') return "something other than a port after ']'";
    port = rest.empty() ? rest : rest.substr(1);
    if (!rest.empty() && port.empty()) return "no port after ':'";
  } else {
    const std::size_t colon = text.find(':');
    address.host = text.substr(0, colon);
    if (colon != std::string_view::npos) {
      port = text.substr(colon + 1);
      if (port.empty()) return "no port after ':'";
    }
  }
  if (address.host.empty()) return "no host";
  if (address.host.find_first_of(" \t/?#@[]") != std::string::npos) return "not a host name";
  if (port.empty()) return std::nullopt;
  const auto number = parse_number<int>(port);
  if (!number || *number < 1 || *number > kPortMax)
    return "the port is not a number from 1 to 65535";
  address.port = *number;
  return std::nullopt;
}

std::optional<const char*> take_database(std::string_view text, RedisAddress& address) {
  if (text.empty()) return std::nullopt;
  const auto number = parse_number<int>(text);
  if (!number || *number < 0 || *number > kDatabaseMax) return "the database is not a number";
  address.db = *number;
  return std::nullopt;
}

std::optional<const char*> parse_unix(std::string_view rest, RedisAddress& address) {
  if (const std::size_t query = rest.find('?'); query != std::string_view::npos) {
    const std::string_view option = rest.substr(query + 1);
    if (!option.starts_with("db=")) return "an unknown option behind '?'";
    if (auto fault = take_database(option.substr(3), address)) return fault;
    rest = rest.substr(0, query);
  }
  if (!rest.starts_with('/')) return "the socket's path must begin with '/'";
  address.unix_path = rest;
  return std::nullopt;
}

std::optional<const char*> parse_tcp(std::string_view rest, RedisAddress& address) {
  const std::size_t slash = rest.find('/');
  if (slash != std::string_view::npos) {
    if (auto fault = take_database(rest.substr(slash + 1), address)) return fault;
  }
  return take_host(rest.substr(0, slash), address);
}

std::optional<const char*> parse_node(std::string_view place, RedisAddress& address) {
  address.is_cluster = true;
  if (place.find('/') != std::string_view::npos) {
    return "a Redis Cluster has no database to choose, so nothing follows the port";
  }
  return take_host(place, address);
}

std::string host_and_port(const RedisAddress& address) {
  const bool v6 = address.host.find(':') != std::string::npos;
  return (v6 ? "[" + address.host + "]" : address.host) + ":" + std::to_string(address.port);
}

std::optional<const char*> parse_sentinels(std::string_view place, RedisAddress& address) {
  const std::size_t slash = place.find('/');
  if (slash == std::string_view::npos || slash + 1 == place.size()) {
    return "no '/' and name of what the Sentinels watch behind them";
  }
  address.primary = place.substr(slash + 1);
  if (address.primary.find_first_of(" \t/?#@,") != std::string::npos) return "not a primary's name";
  place = place.substr(0, slash);
  while (true) {
    const std::size_t comma = place.find(',');
    RedisAddress sentinel;
    sentinel.port = RedisSentinel().port;
    if (const auto fault = take_host(place.substr(0, comma), sentinel)) return fault;
    address.sentinels.push_back({sentinel.host, sentinel.port});
    if (comma == std::string_view::npos) break;
    place.remove_prefix(comma + 1);
  }
  address.host = address.sentinels.front().host;
  address.port = address.sentinels.front().port;
  return std::nullopt;
}

std::string sentinels_of(const RedisAddress& address) {
  std::string text(address.is_tls ? kTlsSentinelScheme : kSentinelScheme);
  for (const RedisSentinel& each : address.sentinels) {
    RedisAddress at;
    at.host = each.host;
    at.port = each.port;
    text += (text.ends_with('/') ? "" : ",") + host_and_port(at);
  }
  return text + "/" + address.primary;
}

}  // namespace

Result<RedisAddress> parse_redis_address(std::string_view text) {
  const AddressParts parts = split_address(text);
  RedisAddress address;
  address.is_tls = parts.scheme.starts_with("rediss");
  std::optional<const char*> fault;
  if (parts.scheme == "unix://") {
    fault = parse_unix(parts.place, address);
  } else if (parts.scheme == "redis://" || parts.scheme == kTlsScheme) {
    fault = parse_tcp(parts.place, address);
  } else if (is_sentinel_scheme(parts.scheme)) {
    fault = parse_sentinels(parts.place, address);
  } else if (is_cluster_scheme(parts.scheme)) {
    fault = parse_node(parts.place, address);
  } else if (parts.scheme.empty()) {
    fault = take_host(parts.place, address);
  } else {
    fault = "unknown scheme";
  }
  if (fault) return bad_uri(text, *fault);
  return address;
}

Result<RedisCredentials> parse_redis_user_info(std::string_view user_info) {
  if (user_info.size() > Secret::kBytesMax) {
    return Error{ErrorCode::kUsage, "the user and password in a Redis address are longer than " +
                                        std::to_string(Secret::kBytesMax) + " bytes"};
  }
  RedisCredentials credentials;
  const std::size_t colon = std::min(user_info.find(':'), user_info.size());
  credentials.user.resize(colon);
  SPEEDO_ASSIGN(const std::size_t user_bytes,
                percent_decode(user_info.substr(0, colon), credentials.user.data()));
  credentials.user.resize(user_bytes);
  if (colon == user_info.size()) return credentials;
  SPEEDO_ASSIGN(credentials.password, Secret::filled_by([&](std::span<char> memory) {
                  return percent_decode(user_info.substr(colon + 1), memory.data());
                }));
  return credentials;
}

// A path of a socket with a comma in it cannot be one of several. Of a cluster's nodes the first
// has the scheme, for all of them.
Result<std::vector<RedisAddress>> parse_redis_addresses(std::string_view text) {
  if (is_sentinel_scheme(split_address(text).scheme)) {
    SPEEDO_ASSIGN(RedisAddress watched, parse_redis_address(text));
    return std::vector{std::move(watched)};
  }
  const bool is_cluster = is_cluster_scheme(split_address(text).scheme);
  std::vector<RedisAddress> all;
  std::set<std::string> known;
  while (true) {
    const std::size_t comma = text.find(',');
    const std::string_view each = text.substr(0, comma);
    const bool has_scheme = !split_address(each).scheme.empty();
    if (is_cluster && !all.empty() && has_scheme) {
      return bad_uri(each, "it follows a Redis Cluster, after which there are nodes of that "
                           "cluster alone, without a scheme");
    }
    SPEEDO_ASSIGN(RedisAddress address, parse_redis_address(each));
    if (!address.sentinels.empty()) {
      return bad_uri(each, "what Sentinels watch is no server among others: give it alone");
    }
    if (address.is_cluster && !is_cluster) {
      return bad_uri(each, "a Redis Cluster is no server among others: give it alone, or the "
                           "others alone");
    }
    if (is_cluster && !all.empty()) {
      if (const auto fault = parse_node(each, address)) return bad_uri(each, *fault);
      address.is_tls = all.front().is_tls;
    }
    if (!known.insert(to_string(address)).second) {
      return usage_error("--redis names " + to_string(address) +
                         " twice: a job is spread over servers that differ");
    }
    all.push_back(std::move(address));
    if (comma == std::string_view::npos) break;
    text.remove_prefix(comma + 1);
  }
  if (all.size() > kRecordServersMax) {
    return usage_error("--redis names " + std::to_string(all.size()) + " servers, the most is " +
                       std::to_string(kRecordServersMax));
  }
  return all;
}

std::string to_string(const std::vector<RedisAddress>& addresses) {
  std::string text;
  const bool is_cluster = !addresses.empty() && addresses.front().is_cluster;
  if (is_cluster) text = addresses.front().is_tls ? kTlsClusterScheme : kClusterScheme;
  for (std::size_t i = 0; i < addresses.size(); ++i) {
    if (i > 0) text += ',';
    text += is_cluster ? host_and_port(addresses[i]) : to_string(addresses[i]);
  }
  return text;
}

std::size_t part_count(const std::vector<RedisAddress>& addresses) {
  const bool is_cluster = !addresses.empty() && addresses.front().is_cluster;
  return is_cluster ? kClusterParts : addresses.size();
}

Result<RedisOptions> parse_redis_uri(std::string_view uri) {
  RedisOptions options;
  SPEEDO_ASSIGN(options.address, parse_redis_address(uri));
  SPEEDO_ASSIGN(options.credentials, parse_redis_user_info(split_address(uri).user_info));
  return options;
}

std::string to_string(const RedisAddress& address) {
  const std::string db = std::to_string(address.db);
  if (!address.unix_path.empty()) {
    return "unix://" + address.unix_path + (address.db == 0 ? "" : "?db=" + db);
  }
  if (!address.sentinels.empty()) return sentinels_of(address);
  const std::string place = host_and_port(address);
  if (address.db == 0 && (!address.is_tls || address.is_cluster)) return place;
  return (address.is_tls ? "rediss://" : "redis://") + place +
         (address.db == 0 ? "" : "/" + db);
}

}  // namespace speedo
