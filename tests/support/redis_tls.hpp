#pragma once

#include <filesystem>
#include <string>

#include <speedo/store/redis_store.hpp>

#include "gate/authority.hpp"
#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/temp_dir.hpp"

namespace speedo::test {

// An authority with certificates for a redis-server that speaks TLS, and for its clients.
class RedisTls {
 public:
  RedisTls() {
    REQUIRE(create_authority(folder_.path()));
    issue({.name = "redis", .is_server = true, .hosts = {"127.0.0.1"}});
    issue({.name = "client"});
  }
  void issue(const CertificateOrder& order) const {
    REQUIRE(issue_certificate(folder_.path(), order));
  }

  // Lines of redis.conf, with the certificate of that name.
  std::string lines(const std::string& certificate = "redis",
                    const std::string& asks_clients = "no") const {
    return "tls-port " + std::to_string(port()) + "\ntls-cert-file " + file(certificate + ".pem") +
           "\ntls-key-file " + file(certificate + ".key") + "\ntls-ca-cert-file " +
           file("ca.pem") + "\ntls-auth-clients " + asks_clients + "\n";
  }
  int port() const { return port_.port(); }
  std::string address() const { return "rediss://127.0.0.1:" + std::to_string(port()); }
  RedisTlsFiles files() const {
    return {.authority = file("ca.pem"), .certificate = {}, .key = {}};
  }
  RedisTlsFiles files_of(const std::string& client) const {
    return {.authority = file("ca.pem"),
            .certificate = file(client + ".pem"),
            .key = file(client + ".key")};
  }
  std::filesystem::path folder() const { return folder_.path(); }
  std::string file(const std::string& name) const { return (folder_.path() / name).string(); }

 private:
  const TempDir folder_;
  const ReservedPort port_;
};

}  // namespace speedo::test
