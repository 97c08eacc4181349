#include "cli/process_secrets.hpp"

#include <string.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include <speedo/store/store_address.hpp>

#include "cli/arguments.hpp"
#include "cli/password_source.hpp"

namespace speedo {

namespace {

// The value of the first such entry; every one of them is wiped.
Result<Secret> take_variable(const std::string& name) {
  std::optional<Result<Secret>> taken;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    if (!std::string_view(*entry).starts_with(name + "=")) continue;
    char* const value = *entry + name.size() + 1;
    const std::size_t size = ::strlen(value);
    if (!taken) taken = checked_password({value, size}, name);
    ::explicit_bzero(value, size);
  }
  ::unsetenv(name.c_str());
  return taken.value_or(Secret());
}

// Copies a flag's name only: a value may be a secret.
bool names_redis(std::string_view argument) {
  if (!argument.starts_with('-')) return false;
  const std::string name(argument.substr(0, argument.find('=')));
  return looks_like_flag(name) && squash(name) == "redis";
}

// Where in an argument an address of Redis begins; npos: nowhere. `after_flag`: the argument before
// is --redis. The scheme tells as well, so that a misspelt flag shows no password in its error.
std::size_t address_in(std::string_view argument, bool after_flag) {
  if (after_flag) return 0;
  if (names_redis(argument)) {
    const std::size_t equals = argument.find('=');
    return equals == std::string_view::npos ? equals : equals + 1;
  }
  for (const std::string_view scheme :
       {"redis://", "rediss://", "redis-cluster://", "rediss-cluster://", "redis-sentinel://",
        "rediss-sentinel://", "unix://"}) {
    const std::size_t at = argument.find(scheme);
    if (at != std::string_view::npos) return at;
  }
  return std::string_view::npos;
}

// Moves what follows the user info over it. The bytes that are left over become zeros.
void cut_out(char* from, std::size_t size) {
  const std::size_t rest = ::strlen(from + size);
  ::memmove(from, from + size, rest);
  ::explicit_bzero(from + rest, size);
}

Result<RedisCredentials> take_user_info(char* address) {
  const AddressParts parts = split_address(address);
  const std::size_t begin = parts.scheme.size();
  const auto size = static_cast<std::size_t>(parts.place.data() - (address + begin));
  const bool is_one = parts.user_info.find(',') == std::string_view::npos;
  auto credentials =
      is_one ? parse_redis_user_info(parts.user_info)
             : usage_error("--redis: several servers have one user and password, which stand "
                           "before the first address; a comma in them is written %2C");
  cut_out(address + begin, size);
  return credentials;
}

}  // namespace

Result<ProcessSecrets> take_secrets(int argc, char** argv) {
  ProcessSecrets secrets;
  auto password = take_variable(kPasswordVariable);
  const auto user = take_variable(kUsernameVariable);
  std::optional<Error> fault;
  for (int i = 1; i < argc; ++i) {
    const std::string_view before = argv[i - 1];
    const bool after_flag = i > 1 && names_redis(before) && before.find('=') == before.npos;
    const std::size_t at = address_in(argv[i], after_flag);
    if (at == std::string_view::npos) continue;
    auto credentials = take_user_info(argv[i] + at);
    if (!credentials) {
      fault = std::move(credentials).error();
    } else if (!credentials->user.empty() || !credentials->password.empty()) {
      secrets.address = *std::move(credentials);
    }
  }
  if (fault) return *std::move(fault);
  SPEEDO_ASSIGN(secrets.environment.password, std::move(password));
  SPEEDO_TRY(user);
  secrets.environment.user = user->reveal();
  return secrets;
}

}  // namespace speedo
