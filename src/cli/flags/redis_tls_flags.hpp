#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

#include "cli/options/option_values.hpp"

namespace speedo {

// What TLS with Redis goes by: --redis-tls-ca, --redis-tls-cert, --redis-tls-key. Error: kUsage for
// what does not belong together.
Result<RedisTlsFiles> redis_tls_files(const OptionValues& values);

// The same as arguments of another program.
std::vector<std::string> to_arguments(const RedisTlsFiles& files);

}  // namespace speedo
