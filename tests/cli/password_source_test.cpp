#include "cli/password_source.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <optional>
#include <thread>

#include "cli/signals.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

class PasswordFile {
 public:
  explicit PasswordFile(const std::string& content) {
    std::ofstream(path(), std::ios::binary) << content;
    ::chmod(path().c_str(), 0600);
  }
  std::filesystem::path path() const { return folder_ / "password"; }
  const TempDir& folder() const { return folder_; }

 private:
  TempDir folder_;
};

// What a file with this content gives; nothing if it is refused with kConfig.
std::optional<std::string> password_in(const std::string& content) {
  const PasswordFile file(content);
  const auto secret = read_password_file(file.path());
  if (secret) return std::string(secret->reveal());
  CHECK(secret.error().code == ErrorCode::kConfig);
  CHECK(secret.error().message.find(file.path().string()) != std::string::npos);
  CHECK(secret.error().message.find("hush") == std::string::npos);
  return std::nullopt;
}

ErrorCode code_of(const std::filesystem::path& path) {
  const auto secret = read_password_file(path);
  REQUIRE_FALSE(secret);
  INFO(secret.error().message);
  CHECK(secret.error().message.find(path.string()) != std::string::npos);
  return secret.error().code;
}

}  // namespace

TEST_CASE("A password file holds one line, with or without a newline at its end") {
  CHECK(password_in("hush") == "hush");
  CHECK(password_in("hush\n") == "hush");
  CHECK(password_in("hush\r\n") == "hush");
  CHECK(password_in(" hu sh\t@% \n") == " hu sh\t@% ");
  CHECK(password_in("h\xC3\xBCsh\n") == "h\xC3\xBCsh");
  const std::string longest(Secret::kBytesMax - 2, 'x');
  CHECK(password_in(longest) == longest);
  CHECK(password_in(longest + "\n") == longest);
}

TEST_CASE("A password file that is empty, too long or more than a line is refused") {
  CHECK_FALSE(password_in(""));
  CHECK_FALSE(password_in("\n"));
  CHECK_FALSE(password_in("\r\n"));
  CHECK_FALSE(password_in("hush\n\n"));
  CHECK_FALSE(password_in("hush\nhush\n"));
  CHECK_FALSE(password_in("hush\r"));
  CHECK_FALSE(password_in(std::string("h\0u\0s\0h\0", 8)));
  CHECK_FALSE(password_in(std::string(Secret::kBytesMax - 1, 'x')));
  CHECK_FALSE(password_in(std::string(Secret::kBytesMax - 1, 'x') + "\n"));
  CHECK_FALSE(password_in(std::string(100000, 'x')));
}

TEST_CASE("A password file that is missing, a folder, or another user's is refused") {
  const PasswordFile file("hush\n");
  CHECK(code_of(file.folder() / "none") == ErrorCode::kNotFound);
  CHECK(code_of(file.folder().path()) == ErrorCode::kConfig);
  ::chmod(file.path().c_str(), 0);
  // Root may read everything, so it becomes nobody for this one.
  constexpr uid_t kNobody = 65534;
  const bool root = ::geteuid() == 0;
  if (root) {
    ::chmod(file.folder().path().c_str(), 0755);
    REQUIRE(::seteuid(kNobody) == 0);
  }
  const ErrorCode code = code_of(file.path());
  if (root) REQUIRE(::seteuid(0) == 0);
  CHECK(code == ErrorCode::kRefused);
}

TEST_CASE("A password file that is a pipe is read to its end") {
  const TempDir folder;
  const auto path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const pid_t writer = ::fork();
  if (writer == 0) {
    std::ofstream(path) << "hu" << std::flush << "sh\n";
    ::_exit(0);
  }
  const auto secret = read_password_file(path);
  ::waitpid(writer, nullptr, 0);
  REQUIRE(secret);
  CHECK(secret->reveal() == "hush");
}

TEST_CASE("A password is read from a pipe whose writer has closed it before") {
  int ends[2] = {-1, -1};
  REQUIRE(::pipe2(ends, O_CLOEXEC) == 0);
  REQUIRE(::write(ends[1], "hush\n", 5) == 5);
  ::close(ends[1]);
  const auto secret = read_password_file("/dev/fd/" + std::to_string(ends[0]));
  ::close(ends[0]);
  REQUIRE(secret);
  CHECK(secret->reveal() == "hush");
}

TEST_CASE("Who waits for a password obeys a signal though nobody writes to the pipe") {
  const TempDir folder;
  const auto path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  const pid_t reader = ::fork();
  if (reader == 0) {
    ::alarm(20);
    install_signal_handlers(SignalEffect::kStop, SignalEffect::kNone);
    std::ofstream(folder / "ready");
    const auto secret = read_password_file(path);
    ::_exit(secret ? 1 : static_cast<int>(secret.error().code));
  }
  for (int i = 0; i < 2000 && !std::filesystem::exists(folder / "ready"); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  ::kill(reader, SIGTERM);
  int status = 0;
  ::waitpid(reader, &status, 0);
  REQUIRE(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == static_cast<int>(ErrorCode::kUnavailable));
}

TEST_CASE("A file's password comes before the environment's, and that before the address's") {
  const PasswordFile file("of file\n");
  ProcessSecrets secrets;
  CHECK(redis_credentials("", secrets)->password.empty());
  secrets.address = {"address", Secret("of address")};
  CHECK(redis_credentials("", secrets)->password.reveal() == "of address");
  CHECK(redis_credentials("", secrets)->user == "address");
  secrets.environment.password = Secret("of environment");
  CHECK(redis_credentials("", secrets)->password.reveal() == "of environment");
  CHECK(redis_credentials("", secrets)->user == "address");
  CHECK(redis_credentials(file.path(), secrets)->password.reveal() == "of file");
  CHECK(redis_credentials(file.path(), secrets)->user == "address");
  CHECK_FALSE(redis_credentials(file.folder() / "none", secrets));
}

TEST_CASE("The address and the environment may name a user each only if it is the same") {
  const PasswordFile file("of file\n");
  ProcessSecrets secrets;
  secrets.environment.user = "ann";
  CHECK(redis_credentials("", secrets)->user == "ann");
  secrets.address.user = "ann";
  CHECK(redis_credentials("", secrets)->user == "ann");
  secrets.address.user = "bob";
  for (const std::string& path : {std::string(), file.path().string()}) {
    const auto refused = redis_credentials(path, secrets);
    REQUIRE_FALSE(refused);
    CHECK(refused.error().code == ErrorCode::kUsage);
    CHECK(refused.error().message.find("'bob'") != std::string::npos);
    CHECK(refused.error().message.find("SPEEDO_REDIS_USERNAME says 'ann'") != std::string::npos);
  }
}

TEST_CASE("A password's file is read again; a pipe, and what is in no file, is not") {
  const PasswordFile file("one\n");
  ProcessSecrets secrets;
  secrets.environment.password = Secret("of environment");
  CHECK(redis_credentials("", secrets)->renew == nullptr);
  const auto credentials = redis_credentials(file.path(), secrets);
  REQUIRE((credentials && credentials->renew));
  CHECK(credentials->renew()->reveal() == "one");
  std::ofstream(file.path()) << "two\n";
  CHECK(credentials->renew()->reveal() == "two");
  CHECK(credentials->password.reveal() == "one");
  std::ofstream(file.path()) << "";
  CHECK_FALSE(credentials->renew());
  std::filesystem::remove(file.path());
  CHECK_FALSE(credentials->renew());
  REQUIRE(::mkfifo(file.path().c_str(), 0600) == 0);
  CHECK_FALSE(credentials->renew());
}

}  // namespace speedo
