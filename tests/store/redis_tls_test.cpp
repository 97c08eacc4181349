// TLS to real servers: whose certificate is accepted, and whose is not.

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>

#include "store/store_under_test.hpp"
#include "support/redis_tls.hpp"

namespace speedo::test {
namespace {

RedisOptions options_for(const std::string& address, const RedisTlsFiles& files) {
  RedisOptions options = quick_options(address);
  options.tls = files;
  options.attempts_max = 2;
  return options;
}

Error refusal(const std::string& address, const RedisTlsFiles& files) {
  const auto store = open_redis_store(options_for(address, files), "test");
  REQUIRE_FALSE(store.has_value());
  return store.error();
}

}  // namespace

TEST_CASE("certificates of a Redis server that are not accepted", "[redis]") {
  RedisTls tls;
  tls.issue({.name = "over", .is_server = true, .hosts = {"127.0.0.1"}, .days = 0});
  tls.issue({.name = "elsewhere", .is_server = true, .hosts = {"10.9.8.7", "redis.example.org"}});
  tls.issue({.name = "revoked", .is_server = true, .hosts = {"127.0.0.1"}});
  tls.issue({.name = "worker"});
  REQUIRE(revoke_certificates(tls.folder(), "revoked"));
  const RedisTls other;
  struct Case {
    const char* certificate;
    const RedisTls* authority;
    const char* says;
  };
  for (const Case& each : {Case{"over", &tls, "expired"},
                           Case{"elsewhere", &tls, "is not for the name '127.0.0.1'"},
                           Case{"revoked", &tls, "revoked"}, Case{"worker", &tls, "purpose"},
                           Case{"redis", &other, "not accepted"}}) {
    CAPTURE(each.certificate);
    const RedisServer server({.extra = tls.lines(each.certificate)});
    const Error error = refusal(tls.address(), each.authority->files());
    CHECK(error.code == ErrorCode::kRefused);
    CHECK_THAT(error.message, Catch::Contains("Redis at " + tls.address()) &&
                                  Catch::Contains(each.says) && Catch::Contains("--redis-tls-ca"));
  }
  const RedisServer server({.extra = tls.lines()});
  require(open_redis_store(options_for(tls.address(), tls.files()), "test"));
  // The system knows nothing of this authority.
  CHECK(refusal(tls.address(), {}).code == ErrorCode::kRefused);
}

TEST_CASE("a Redis server that asks for its clients' certificates", "[redis]") {
  const RedisTls tls;
  for (const char* version : {"TLSv1.2", "TLSv1.3"}) {
    CAPTURE(version);
    const RedisServer server(
        {.extra = tls.lines("redis", "yes") + "tls-protocols " + version + "\n"});
    require(open_redis_store(options_for(tls.address(), tls.files_of("client")), "test"));
    const Error error = refusal(tls.address(), tls.files());
    CHECK_THAT(error.message, Catch::Contains("--redis-tls-cert"));
  }
  const RedisServer server({.extra = tls.lines("redis", "yes")});
  CHECK(refusal(tls.address(), tls.files()).code == ErrorCode::kRefused);
}

TEST_CASE("files for TLS that are missing, or none, are named", "[redis]") {
  const RedisTls tls;
  const RedisServer server({.extra = tls.lines()});
  RedisTlsFiles files = tls.files();
  files.authority = "/nowhere/ca.pem";
  const Error missing = refusal(tls.address(), files);
  CHECK(missing.code == ErrorCode::kNotFound);
  CHECK_THAT(missing.message, Catch::Contains("/nowhere/ca.pem"));
  files.authority = tls.file("redis.key");
  const Error none = refusal(tls.address(), files);
  CHECK(none.code == ErrorCode::kConfig);
  CHECK_THAT(none.message, Catch::Contains("redis.key"));
}

TEST_CASE("a server that speaks no TLS, and one that speaks nothing else", "[redis]") {
  const RedisTls tls;
  const RedisServer server({.extra = tls.lines()});
  const Error clear = refusal("rediss://127.0.0.1:" + std::to_string(server.port()), tls.files());
  CHECK(clear.code == ErrorCode::kTimeout);
  CHECK_THAT(clear.message, Catch::Contains("tls-port"));
  const Error sealed = refusal("redis://127.0.0.1:" + std::to_string(tls.port()), {});
  CHECK(sealed.code == ErrorCode::kUnavailable);
  CHECK_THAT(sealed.message, Catch::Contains("write rediss://"));
  const Error asked = refusal("redis://:secret@127.0.0.1:" + std::to_string(tls.port()), {});
  CHECK(asked.code == ErrorCode::kUnavailable);
  CHECK_THAT(asked.message, Catch::Contains("AUTH") && Catch::Contains("write rediss://"));
}

TEST_CASE("a connection by TLS is made again after the server was away", "[redis]") {
  const RedisTls tls;
  RedisServer server({.append_only = true, .extra = tls.lines()});
  RedisOptions options = patient(tls.address());
  options.tls = tls.files();
  const auto store = open(options);
  require(store->put_blob("a", "1"));
  server.restart();
  const auto blob = store->get_blob("a");
  require(blob);
  REQUIRE(*blob == "1");
}

TEST_CASE("a Redis Cluster by TLS", "[redis]") {
  const RedisTls tls;
  const RedisServer server({.extra = tls.lines() + "cluster-enabled yes\ntls-cluster yes\n"});
  const std::string command = "redis-cli --tls --cacert " + tls.file("ca.pem") + " -p " +
                              std::to_string(tls.port()) + " CLUSTER ADDSLOTSRANGE 0 16383";
  REQUIRE(std::system((command + " >/dev/null").c_str()) == 0);
  const std::string address = "rediss-cluster://127.0.0.1:" + std::to_string(tls.port());
  auto nodes = cluster_options(address);
  for (RedisOptions& each : nodes) {
    each.tls = tls.files();
    each.attempts_max = 100;
  }
  const auto store = open_redis_store(nodes, "test");
  require(store);
  require(put(**store, weights_key(), info_of(1, 100000), pattern(100000, 1)));
  std::vector<float> read(100000);
  require(get(**store, weights_key(), kModel, read));
  CHECK(read == pattern(100000, 1));
}

}  // namespace speedo::test
