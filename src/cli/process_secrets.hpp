#pragma once

#include <speedo/base/result.hpp>
#include <speedo/store/redis_store.hpp>

namespace speedo {

// What a process was started with that others must not see.
struct ProcessSecrets {
  RedisCredentials environment;  // SPEEDO_REDIS_USERNAME, SPEEDO_REDIS_PASSWORD
  RedisCredentials address;      // user and password in --redis
};

inline constexpr const char* kPasswordVariable = "SPEEDO_REDIS_PASSWORD";
inline constexpr const char* kUsernameVariable = "SPEEDO_REDIS_USERNAME";

// Takes users and passwords out of the environment and out of every address on the command line, in
// the very memory that the kernel shows as /proc/PID/environ and cmdline: what is left is an
// address without them, and an environment without those variables, for child processes as well. To
// be called before anything else, and before there are threads. Errors: kUsage and kConfig for a
// password that is too long or not written as it should be.
Result<ProcessSecrets> take_secrets(int argc, char** argv);

}  // namespace speedo
