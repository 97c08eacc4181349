// A job that reaches Redis by TLS alone.

#include <sys/stat.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <memory>
#include <sstream>
#include <string>

#include "support/catch.hpp"
#include "support/redis_tls.hpp"

#include "cluster.hpp"

namespace speedo {
namespace {

using test::Arguments;
using test::Cluster;
using test::Process;

constexpr const char* kPassword = "hush";

Arguments arguments_of(const RedisTlsFiles& files) {
  Arguments arguments = {"--redis-tls-ca", files.authority.string()};
  if (files.certificate.empty()) return arguments;
  return test::joined(arguments, {"--redis-tls-cert", files.certificate.string(),
                                  "--redis-tls-key", files.key.string()});
}

// The job's connections, and those of them that came to the port for TLS.
std::pair<int, int> connections(const test::RedisServer& server, int tls_port) {
  const std::string command = "redis-cli -p " + std::to_string(server.port()) +
                              " --no-auth-warning -a " + kPassword + " CLIENT LIST";
  const std::unique_ptr<FILE, int (*)(FILE*)> pipe(::popen(command.c_str(), "r"), ::pclose);
  REQUIRE(pipe);
  std::pair<int, int> counts;
  std::array<char, 4096> line{};
  while (std::fgets(line.data(), line.size(), pipe.get()) != nullptr) {
    const std::string text = line.data();
    if (text.find(" name=speedo-") == std::string::npos) continue;
    ++counts.first;
    const std::string port = " laddr=127.0.0.1:" + std::to_string(tls_port) + " ";
    if (text.find(port) != std::string::npos) ++counts.second;
  }
  return counts;
}

}  // namespace

TEST_CASE("a job trains over TLS with certificates of both sides") {
  constexpr std::uint64_t kIterations = 150;
  const test::RedisTls tls;
  test::RedisServer server({kPassword, false, tls.lines("redis", "yes")});
  Cluster::Options options;
  options.redis = tls.address();
  options.password = kPassword;
  options.tls = tls.files_of("client");
  options.rows = 8192;
  Cluster cluster(kIterations, options);
  const std::vector<std::string> secret = {std::string("SPEEDO_REDIS_PASSWORD=") + kPassword};
  const Arguments certificates = arguments_of(tls.files_of("client"));
  Process& master = cluster.start_master(test::joined({"--workers", "2"}, certificates), secret);
  const std::string address = cluster.address();

  Process& stranger = cluster.start_worker(address, arguments_of(tls.files()), secret);
  CHECK(stranger.wait() == 77);
  CHECK_THAT(stranger.errors(), Catch::Contains("--redis-tls-cert"));
  cluster.workers().pop_back();

  cluster.start_worker(address, certificates, secret);
  cluster.start_worker(address, certificates, secret);
  REQUIRE(cluster.counts_beyond(20));
  const auto [all, by_tls] = connections(server, tls.port());
  CHECK(all >= 3);
  CHECK(by_tls == all);
  test::require_ending(cluster, master, {kIterations, 2, 0});
}

TEST_CASE("a master does not go to a Redis whose certificate another authority issued") {
  const test::RedisTls tls, other;
  test::RedisServer server({.extra = tls.lines()});
  Cluster::Options options;
  options.redis = tls.address();
  Cluster cluster(10, options);
  Process& master =
      cluster.start_master(test::joined({"--workers", "1"}, arguments_of(other.files())));
  CHECK(master.wait() == 77);
  CHECK_THAT(master.errors(), Catch::Contains("not accepted") &&
                                  Catch::Contains("--redis-tls-ca"));
}

}  // namespace speedo
