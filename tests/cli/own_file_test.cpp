// Which speedo.toml of the working directory is taken for what the user says.

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "cli/options/own_file.hpp"
#include "cli/options/read_options.hpp"
#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

// The working directory while it lives; it has a speedo.toml.
class Here {
 public:
  explicit Here(mode_t mode) {
    std::ofstream(folder_ / "speedo.toml") << "max_iter = 7\n";
    ::chmod((folder_ / "speedo.toml").c_str(), mode);
    fs::current_path(folder_.path());
  }
  ~Here() { fs::current_path(before_); }
  Here(const Here&) = delete;
  Here& operator=(const Here&) = delete;

  // The value that holds, or the error.
  static Result<std::string> max_iter(const std::vector<std::string>& arguments = {}) {
    OptionValues values(Program::kMaster);
    SPEEDO_TRY(read_some_options(arguments, values, {}));
    std::string text = "-";
    values.get("max-iter", text);
    return text;
  }

 private:
  const fs::path before_ = fs::current_path();
  TempDir folder_;
};

void check_not_taken(const std::string& why) {
  const auto refused = Here::max_iter();
  REQUIRE_FALSE(refused);
  INFO(refused.error().message);
  CHECK(refused.error().code == ErrorCode::kRefused);
  CHECK(refused.error().message.starts_with("the configuration file speedo.toml: " + why));
  CHECK(refused.error().message.find("--config speedo.toml takes it") != std::string::npos);
  CHECK(*Here::max_iter({"--config", "speedo.toml"}) == "7");
  CHECK(*Here::max_iter({"--no-config"}) == "-");
}

TEST_CASE("A file is one's own if no other user can have written it") {
  constexpr uid_t kAnn = 1000, kBob = 1001;
  constexpr gid_t kAnns = 1000, kTeam = 50;
  const auto is_anns = [&](uid_t owner, gid_t group, mode_t mode) {
    struct stat status {};
    status.st_uid = owner;
    status.st_gid = group;
    status.st_mode = S_IFREG | mode;
    return is_own(status, kAnn, kAnns);
  };
  CHECK(is_anns(kAnn, kAnns, 0644));
  CHECK(is_anns(kAnn, kAnns, 0664));  // by umask 002
  CHECK(is_anns(kAnn, kTeam, 0644));
  CHECK(is_anns(0, 0, 0444));
  CHECK(is_anns(0, kAnns, 0664));
  CHECK_FALSE(is_anns(kAnn, kTeam, 0664));
  CHECK_FALSE(is_anns(kAnn, kAnns, 0666));
  CHECK_FALSE(is_anns(0, 0, 0646));
  CHECK_FALSE(is_anns(kBob, kAnns, 0644));
  CHECK_FALSE(is_anns(65534, 65534, 0444));
}

TEST_CASE("The file here is taken unless another user can have written it") {
  for (const mode_t mode : {0644, 0600, 0664}) {
    const Here here(mode);
    INFO(mode);
    const auto taken = Here::max_iter();
    INFO((taken ? "" : taken.error().message));
    REQUIRE(taken);
    CHECK(*taken == "7");
  }
  const Here here(0646);
  check_not_taken("other users may write it (chmod go-w speedo.toml)");
}

TEST_CASE("What another user owns is not taken, by root neither; nor where their link leads") {
  if (::geteuid() != 0) SPEEDO_SKIP("only root can give files away");
  constexpr uid_t kNobody = 65534;
  {
    const Here here(0644);
    REQUIRE(::chown("speedo.toml", kNobody, kNobody) == 0);
    check_not_taken("it belongs to user 65534");
  }
  const Here here(0644);
  fs::rename("speedo.toml", "own.toml");
  fs::create_symlink("own.toml", "speedo.toml");
  CHECK(*Here::max_iter() == "7");
  REQUIRE(::lchown("speedo.toml", kNobody, kNobody) == 0);
  check_not_taken("it belongs to user 65534");
}

}  // namespace
}  // namespace speedo
