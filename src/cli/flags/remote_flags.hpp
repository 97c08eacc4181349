#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "cli/options/option_values.hpp"

namespace speedo {

// How files at URIs are fetched: --data-cache, --data-cache-limit, --data-ca.
struct RemoteFlags {
  std::string cache;                  // a folder; empty: the user's
  std::uint64_t cache_bytes_max = 0;  // 0: no limit
  std::string authority;              // a file of certificates; empty: the system's
};

RemoteFlags remote_flags(const OptionValues& values);

// The flags as another of our programs takes them.
std::vector<std::string> to_arguments(const RemoteFlags& flags);

}  // namespace speedo
