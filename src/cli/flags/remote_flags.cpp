#include "cli/flags/remote_flags.hpp"

namespace speedo {

RemoteFlags remote_flags(const OptionValues& values) {
  RemoteFlags flags;
  values.get("data-cache", flags.cache);
  values.get("data-cache-limit", flags.cache_bytes_max);
  values.get("data-ca", flags.authority);
  return flags;
}

std::vector<std::string> to_arguments(const RemoteFlags& flags) {
  std::vector<std::string> arguments;
  if (!flags.cache.empty()) arguments.push_back("--data-cache=" + flags.cache);
  if (flags.cache_bytes_max != 0) {
    arguments.push_back("--data-cache-limit=" + std::to_string(flags.cache_bytes_max));
  }
  if (!flags.authority.empty()) arguments.push_back("--data-ca=" + flags.authority);
  return arguments;
}

}  // namespace speedo
