#include "cli/process_secrets.hpp"

#include <unistd.h>

#include <cstdlib>
#include <string>
#include <vector>

#include "support/catch.hpp"

namespace speedo {
namespace {

// Arguments in memory as the kernel lays them out: one after another.
class ArgumentMemory {
 public:
  explicit ArgumentMemory(const std::vector<std::string>& words) {
    for (const std::string& word : words) memory_ += word + '\0';
    std::size_t at = 0;
    for (const std::string& word : words) {
      pointers_.push_back(memory_.data() + at);
      at += word.size() + 1;
    }
  }
  Result<ProcessSecrets> take() {
    return take_secrets(static_cast<int>(pointers_.size()), pointers_.data());
  }
  std::string word(std::size_t index) const { return pointers_[index]; }
  bool hold(const std::string& text) const { return memory_.find(text) != std::string::npos; }

 private:
  std::string memory_;
  std::vector<char*> pointers_;
};

}  // namespace

TEST_CASE("A password in an address is taken out of the arguments, whichever flag it stands at") {
  const std::vector<std::vector<std::string>> ways = {
      {"speedo-master", "--redis", "redis://me:h%75sh@host:1/5"},
      {"speedo-master", "--redis=redis://me:h%75sh@host:1/5", "--debug"},
      {"speedo-master", "-Redis", "redis://me:h%75sh@host:1/5", "--debug"},
      {"speedo-master", "--redsi=redis://me:h%75sh@host:1/5"},
      {"speedo-master", "redis://me:h%75sh@host:1/5"}};
  for (const auto& words : ways) {
    CAPTURE(words);
    ArgumentMemory arguments(words);
    const auto secrets = arguments.take();
    REQUIRE(secrets);
    CHECK(secrets->address.user == "me");
    CHECK(secrets->address.password.reveal() == "hush");
    CHECK(arguments.hold("redis://host:1/5"));
    CHECK_FALSE(arguments.hold("h%75sh"));
    CHECK_FALSE(arguments.hold("sh@"));
    CHECK(arguments.word(words.size() - 1).find('@') == std::string::npos);
  }
}

TEST_CASE("Addresses of every form lose their password") {
  const std::vector<std::pair<std::string, std::string>> forms = {
      {"me:hush@host:1", "host:1"},
      {"redis://:hush@host", "redis://host"},
      {"rediss://:hush@host", "rediss://host"},
      {"redis-cluster://:hush@one:1,two:2", "redis-cluster://one:1,two:2"},
      {"unix://:hush@/run/redis.sock?db=2", "unix:///run/redis.sock?db=2"},
      {"http://:hush@host", "http://host"}};
  for (const auto& [given, left] : forms) {
    CAPTURE(given);
    ArgumentMemory arguments({"speedo-worker", "--redis", given});
    const auto secrets = arguments.take();
    REQUIRE(secrets);
    CHECK(secrets->address.password.reveal() == "hush");
    CHECK(arguments.word(2) == left);
    CHECK_FALSE(arguments.hold("hush"));
  }
}

TEST_CASE("Other arguments stay as they are") {
  const std::vector<std::string> words = {
      "speedo-worker", "--master", "akka.tcp://SpeeDO@10.0.0.1:1/user/host", "--solver",
      "a@b.prototxt",  "--redis",  "unix:///run/a@b.sock"};
  ArgumentMemory arguments(words);
  const auto secrets = arguments.take();
  REQUIRE(secrets);
  for (std::size_t i = 0; i < words.size(); ++i) CHECK(arguments.word(i) == words[i]);
  CHECK(secrets->address.user.empty());
  CHECK(secrets->address.password.empty());
}

TEST_CASE("A password written wrongly is an error that hides it, and is taken all the same") {
  ArgumentMemory arguments({"speedo-master", "--redis", "redis://:hush%zz@host"});
  const auto secrets = arguments.take();
  REQUIRE_FALSE(secrets);
  CHECK(secrets.error().code == ErrorCode::kUsage);
  CHECK(secrets.error().message.find("hush") == std::string::npos);
  CHECK_FALSE(arguments.hold("hush"));
}

TEST_CASE("The environment's password is taken, and the memory that it lay in is wiped") {
  ::setenv(kPasswordVariable, "hu sh@%", 1);
  ::setenv(kUsernameVariable, "me", 1);
  const char* const where = std::getenv(kPasswordVariable);
  ArgumentMemory arguments({"speedo-master"});
  const auto secrets = arguments.take();
  REQUIRE(secrets);
  CHECK(secrets->environment.password.reveal() == "hu sh@%");
  CHECK(secrets->environment.user == "me");
  for (std::size_t i = 0; i < 7; ++i) CHECK(where[i] == '\0');
  CHECK(std::getenv(kPasswordVariable) == nullptr);
  CHECK(std::getenv(kUsernameVariable) == nullptr);
}

TEST_CASE("A password in the environment that is more than a line, or too long, is refused") {
  for (const std::string& wrong : {std::string("hush\n"), std::string("hush\r"),
                                   "hush" + std::string(Secret::kBytesMax, '-')}) {
    ::setenv(kPasswordVariable, wrong.c_str(), 1);
    ArgumentMemory arguments({"speedo-master"});
    const auto secrets = arguments.take();
    REQUIRE_FALSE(secrets);
    CHECK(secrets.error().message.find(kPasswordVariable) == 0);
    CHECK(secrets.error().message.find("hush") == std::string::npos);
    CHECK(std::getenv(kPasswordVariable) == nullptr);
  }
}

}  // namespace speedo
