#include "remote/aws_settings.hpp"

#include <map>

#include "remote/remote_server.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

using Variables = std::map<std::string, std::string>;

Result<AwsSettings> settings_with(Variables variables) {
  return read_aws_settings([variables](const std::string& name) {
    const auto found = variables.find(name);
    return found == variables.end() ? std::string() : found->second;
  });
}

TEST_CASE("Without variables and files nobody signs") {
  const auto settings = settings_with({});
  REQUIRE(settings);
  CHECK(!settings->identity);
  CHECK(settings->region == "us-east-1");
  CHECK(settings->endpoint.empty());
}

TEST_CASE("Variables go before files, and a profile names a section") {
  TempDir home;
  test::write_bytes(home / ".aws/credentials",
                    "# mine\n[default]\naws_access_key_id = D\naws_secret_access_key=ds\n\n"
                    "[other]\naws_access_key_id=O\naws_secret_access_key = os\n"
                    "aws_session_token = ot\n");
  test::write_bytes(home / ".aws/config",
                    "[default]\nregion = eu-west-1\n[profile other]\nregion=eu-west-2\n"
                    "endpoint_url = http://127.0.0.1:9000/\n");
  const std::string folder = home.path().string();
  const auto first = settings_with({{"HOME", folder}});
  REQUIRE((first && first->identity));
  CHECK(first->identity->key_id == "D");
  CHECK(first->identity->secret.reveal() == "ds");
  CHECK(first->identity->region == "eu-west-1");

  const auto other = settings_with({{"HOME", folder}, {"AWS_PROFILE", "other"}});
  REQUIRE((other && other->identity));
  CHECK(other->identity->session_token.reveal() == "ot");
  CHECK(other->region == "eu-west-2");
  CHECK(other->endpoint == "http://127.0.0.1:9000");

  const auto given = settings_with({{"HOME", folder},
                                    {"AWS_ACCESS_KEY_ID", "V"},
                                    {"AWS_SECRET_ACCESS_KEY", "vs"},
                                    {"AWS_REGION", "us-west-2"}});
  REQUIRE((given && given->identity));
  CHECK(given->identity->key_id == "V");
  CHECK(given->identity->session_token.empty());
  CHECK(given->region == "us-west-2");
}

TEST_CASE("Half an identity, and an endpoint that is none, are named without their secrets") {
  const auto half = settings_with({{"AWS_SECRET_ACCESS_KEY", "geheim"}});
  REQUIRE(!half);
  CHECK(half.error().code == ErrorCode::kConfig);
  CHECK(half.error().message.find("geheim") == std::string::npos);
  for (const char* endpoint : {"ftp://x", "127.0.0.1:9000", "http://ann:geheim@host"}) {
    const auto bad = settings_with({{"AWS_ENDPOINT_URL", endpoint}});
    REQUIRE(!bad);
    CHECK(bad.error().message.find("geheim") == std::string::npos);
  }
}

}  // namespace
}  // namespace speedo
