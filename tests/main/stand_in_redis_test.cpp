#include "main/stand_in_redis.hpp"

#include <speedo/store/redis_store.hpp>

#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/redis_server.hpp"

namespace speedo {
namespace {

TEST_CASE("A private Redis is started where none answers, and ends with its owner") {
  const test::ReservedPort silent;
  const std::string nobody = silent.address();
  std::string uri;
  {
    const auto redis = start_if_none_answers(nobody);
    INFO((redis ? "" : redis.error().message));
    REQUIRE(redis);
    REQUIRE(*redis != nullptr);
    uri = (*redis)->uri();
    const auto store = open_redis_store(parse_redis_uri(uri).value(), "job");
    REQUIRE(store);
    CHECK((*store)->put_blob("key", "value"));
  }
  RedisOptions once = parse_redis_uri(uri).value();
  once.attempts_max = 1;
  CHECK_FALSE(open_redis_store(once, "job"));
}

TEST_CASE("Where a Redis answers none is started, though it asks for a password") {
  test::RedisServer::Options options;
  options.password = "secret";
  const test::RedisServer server(options);
  const std::string without = "127.0.0.1:" + std::to_string(server.port());
  const auto redis = start_if_none_answers(without);
  REQUIRE(redis);
  CHECK(*redis == nullptr);
}

}  // namespace
}  // namespace speedo
