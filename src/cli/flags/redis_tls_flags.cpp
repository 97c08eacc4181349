#include "cli/flags/redis_tls_flags.hpp"

namespace speedo {
namespace {

constexpr const char* kAuthorityFlag = "redis-tls-ca";
constexpr const char* kCertificateFlag = "redis-tls-cert";
constexpr const char* kKeyFlag = "redis-tls-key";

std::filesystem::path path_of(const OptionValues& values, const char* name) {
  std::string path;
  values.get(name, path);
  return path;
}

}  // namespace

Result<RedisTlsFiles> redis_tls_files(const OptionValues& values) {
  RedisTlsFiles files{.authority = path_of(values, kAuthorityFlag),
                      .certificate = path_of(values, kCertificateFlag),
                      .key = path_of(values, kKeyFlag)};
  if (files.certificate.empty() == files.key.empty()) return files;
  return usage_error("--redis-tls-cert and --redis-tls-key belong together: give both");
}

std::vector<std::string> to_arguments(const RedisTlsFiles& files) {
  std::vector<std::string> arguments;
  const auto add = [&](const char* flag, const std::filesystem::path& path) {
    if (!path.empty()) arguments.push_back(std::string("--") + flag + "=" + path.string());
  };
  add(kAuthorityFlag, files.authority);
  add(kCertificateFlag, files.certificate);
  add(kKeyFlag, files.key);
  return arguments;
}

}  // namespace speedo
