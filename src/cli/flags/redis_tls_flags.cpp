#include "cli/flags/redis_tls_flags.hpp"

namespace speedo {

Result<RedisTlsFiles> redis_tls_files(const OptionValues& values) {
  std::string authority, certificate, key;
  values.get("redis-tls-ca", authority);
  values.get("redis-tls-cert", certificate);
  values.get("redis-tls-key", key);
  if (certificate.empty() != key.empty()) {
    return usage_error("--redis-tls-cert and --redis-tls-key belong together: give both");
  }
  return RedisTlsFiles{.authority = authority, .certificate = certificate, .key = key};
}

std::vector<std::string> to_arguments(const RedisTlsFiles& files) {
  std::vector<std::string> arguments;
  const auto add = [&](const char* flag, const std::filesystem::path& path) {
    if (!path.empty()) arguments.push_back(std::string("--") + flag + "=" + path.string());
  };
  add("redis-tls-ca", files.authority);
  add("redis-tls-cert", files.certificate);
  add("redis-tls-key", files.key);
  return arguments;
}

}  // namespace speedo
