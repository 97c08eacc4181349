#include "local/shared_redis.hpp"

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <netdb.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>

#include "base/descriptor.hpp"
#include "base/random_bits.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

constexpr std::size_t kPasswordLetters = 40;

// A file of texts and secrets, one after another, for this user alone.
Result<void> write_for_user(const fs::path& path, std::initializer_list<std::string_view> parts) {
  const Descriptor file(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  for (const std::string_view part : parts) {
    if (file.get() < 0) break;
    if (::write(file.get(), part.data(), part.size()) == static_cast<ssize_t>(part.size())) {
      continue;
    }
    return Error{ErrorCode::kCannotWrite,
                 fmt::format("cannot write '{}': {}", path.string(), std::strerror(errno))};
  }
  if (file.get() >= 0) return {};
  return Error{ErrorCode::kCannotWrite,
               fmt::format("cannot create '{}': {}", path.string(), std::strerror(errno))};
}

Result<fs::path> write_password(const fs::path& folder, const Secret& password) {
  if (password.empty()) return fs::path();
  fs::path path = folder / "redis.password";
  SPEEDO_TRY(write_for_user(path, {password.reveal(), "\n"}));
  return path;
}

std::uint16_t port_of(const sockaddr_storage& address) {
  const auto* const any = reinterpret_cast<const sockaddr*>(&address);
  if (any->sa_family == AF_INET6) {
    return ntohs(reinterpret_cast<const sockaddr_in6*>(any)->sin6_port);
  }
  return ntohs(reinterpret_cast<const sockaddr_in*>(any)->sin_port);
}

// A port that nobody uses now.
Result<std::uint16_t> free_port(const std::string& address) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int code = ::getaddrinfo(address.c_str(), nullptr, &hints, &found);
  if (code != 0) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("no machine '{}' is known ({}); give an address of this one with "
                             "--host",
                             address, ::gai_strerror(code))};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  const Descriptor socket(::socket(found->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_storage bound{};
  socklen_t size = sizeof(bound);
  const bool done = socket.get() >= 0 &&
                    ::bind(socket.get(), found->ai_addr, found->ai_addrlen) == 0 &&
                    ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&bound), &size) == 0;
  if (done) return port_of(bound);
  return Error{ErrorCode::kUnavailable,
               fmt::format("Redis cannot listen at {}: {}; give an address of this machine with "
                           "--host",
                           address, std::strerror(errno))};
}

// As a word of redis' settings.
std::string redis_quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    quoted += c;
  }
  return quoted + '"';
}

}  // namespace

Secret drawn_password() {
  static constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
  auto made = Secret::filled_by([](std::span<char> memory) -> Result<std::size_t> {
    for (std::size_t i = 0; i < kPasswordLetters; ++i) {
      memory[i] = kLetters[random_bits() % kLetters.size()];
    }
    return kPasswordLetters;
  });
  return made ? std::move(made).value() : Secret{};
}

Result<RedisPlace> shared_redis(const fs::path& folder, const std::string& address,
                                const Secret& password) {
  SPEEDO_ASSIGN(const std::uint16_t port, free_port(address));
  const fs::path settings = folder / "redis.conf";
  const std::string head = fmt::format(
      "bind {}\nport {}\ndir {}\nsave \"\"\nappendonly no\nmaxmemory-policy noeviction\n"
      "loglevel warning\nrequirepass ",
      address, port, redis_quoted(folder.string()));
  SPEEDO_TRY(write_for_user(settings, {head, password.reveal(), "\n"}));
  RedisPlace place;
  SPEEDO_ASSIGN(place.password_file, write_password(folder, password));
  place.command.emplace();
  place.command->arguments = {"redis-server", settings.string()};
  place.command->output = folder / "redis.log";
  const bool is_ipv6 = address.find(':') != std::string::npos;
  place.uri = fmt::format("redis://{}:{}", is_ipv6 ? "[" + address + "]" : address, port);
  place.answers = [address, port] {
    RedisAddress where;
    where.host = address;
    where.port = port;
    return is_somebody_at(where);
  };
  return place;
}

Result<RedisPlace> other_redis(const fs::path& folder, const std::string& uri,
                               const RedisCredentials& credentials) {
  RedisPlace place;
  place.uri = uri;
  place.user = credentials.user;
  SPEEDO_ASSIGN(place.password_file, write_password(folder, credentials.password));
  return place;
}

}  // namespace speedo
