#include <speedo/base/temporary.hpp>

#include <csignal>
#include <fstream>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <speedo/base/file.hpp>
#include <speedo/base/folder.hpp>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

std::span<const std::byte> content_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

std::vector<std::string> names_in(const fs::path& folder) {
  const auto paths = list_folder(folder);
  REQUIRE(paths);
  std::vector<std::string> names;
  for (const fs::path& path : *paths) names.push_back(path.filename());
  return names;
}

// A process that makes both kinds of temporaries beside `target` and is killed.
void die_while_writing(const fs::path& target) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    std::error_code code;
    const auto file = Temporary::file_beside(target, code);
    const auto path = Temporary::path_beside(target, code);
    if (path) std::ofstream(path->path()) << "half";
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFSIGNALED(status));
}

TEST_CASE("What a killed process left is removed at the next write of the same file") {
  const TempDir folder;
  die_while_writing(folder / "model");
  die_while_writing(folder / "model");
  die_while_writing(folder / "other");
  REQUIRE(names_in(folder.path()).size() == 4);  // The second run removed what the first left.
  REQUIRE(write_file_atomically(folder / "model", content_of("whole")));
  const auto names = names_in(folder.path());
  REQUIRE(names.size() == 3);
  CHECK(names[0] == "model");
  CHECK(names[1].starts_with("other."));
  CHECK(names[2].starts_with("other."));
}

TEST_CASE("A folder or no name at all is no target, and what lies there stays") {
  const TempDir folder;
  fs::create_directories(folder / "kept/deeper");
  std::ofstream(folder / "kept/file") << "text";
  std::ofstream(folder / "kept/deeper/file") << "text";
  fs::create_symlink("kept/", folder / "link");
  const fs::path before = fs::current_path();
  fs::current_path(folder / "kept");
  for (const fs::path& target : {folder / "kept/", folder / "link/", fs::path(), fs::path("/")}) {
    CAPTURE(target);
    std::error_code code;
    CHECK_FALSE(Temporary::file_beside(target, code));
    CHECK(code);
    code.clear();
    CHECK_FALSE(Temporary::path_beside(target, code));
    CHECK(code);
    Temporary::sweep(target);
    CHECK_FALSE(write_file_atomically(target, content_of("text")));
    CHECK_FALSE(write_new_file(target, {"text"}, fs::perms{0600}));
  }
  CHECK_FALSE(write_file_atomically(folder / "link", content_of("text")));
  CHECK(check_prefix_writable(""));
  CHECK(check_prefix_writable((folder / "kept/").string()));
  fs::current_path(before);
  CHECK(names_in(folder / "kept") == std::vector<std::string>{"deeper", "file"});
  CHECK(names_in(folder / "kept/deeper") == std::vector<std::string>{"file"});
  CHECK(names_in(folder.path()) == std::vector<std::string>{"kept", "link"});
}

TEST_CASE("What killed processes left beside files that begin alike is swept, and no more") {
  const TempDir folder;
  die_while_writing(folder / "net_iter_10.model");
  die_while_writing(folder / "net_iter_20.model");
  die_while_writing(folder / "nets_iter_10.model");
  std::error_code code;
  const auto mine = Temporary::file_beside(folder / "net_iter_30.model", code);
  REQUIRE(mine);
  REQUIRE(write_file_atomically(folder / "net_iter_10.speedo-tmp-", content_of("a file's name")));
  Temporary::sweep(folder / "net_iter_");
  const auto names = names_in(folder.path());
  REQUIRE(names.size() == 4);
  CHECK(names[0] == "net_iter_10.speedo-tmp-");
  CHECK(names[1] == mine->path().filename());
  CHECK(names[2].starts_with("nets_iter_10.model."));
  CHECK(names[3].starts_with("nets_iter_10.model."));
}

TEST_CASE("A temporary of a living process stays, whoever writes the same file") {
  const TempDir folder;
  std::error_code code;
  auto mine = Temporary::file_beside(folder / "model", code);
  auto path = Temporary::path_beside(folder / "model", code);
  REQUIRE(mine);
  REQUIRE(path);
  REQUIRE(::write(mine->descriptor(), "mine", 4) == 4);
  std::ofstream(path->path()) << "folder";
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) ::_exit(write_file_atomically(folder / "model", content_of("theirs")) ? 0 : 1);
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  REQUIRE(WIFEXITED(status));
  REQUIRE(WEXITSTATUS(status) == 0);
  CHECK(read_file(folder / "model").value() == "theirs");
  REQUIRE(mine->put_in_place());
  CHECK(read_file(folder / "model").value() == "mine");
  REQUIRE(path->put_in_place());
  CHECK(read_file(folder / "model").value() == "folder");
  CHECK(names_in(folder.path()) == std::vector<std::string>{"model"});
}

TEST_CASE("Only names that this program makes are taken for its leavings") {
  const TempDir folder;
  const std::vector<std::string> others = {"model.speedo-tmp-", "model.speedo-tmp-0123456789abcde",
                                           "model.speedo-tmp-0123456789ABCDEF",
                                           "model.speedo-tmp-0123456789abcdefg", "model.tmp.17"};
  for (const std::string& name : others) std::ofstream(folder / name) << "the user's";
  const fs::path link = folder / "model.speedo-tmp-0123456789abcdef";
  std::ofstream(folder / "precious") << "kept";
  fs::create_symlink(folder / "precious", link);
  REQUIRE(write_file_atomically(folder / "model", content_of("x")));
  for (const std::string& name : others) CHECK(fs::exists(folder / name));
  CHECK(fs::is_symlink(link));
  CHECK(read_file(folder / "precious").value() == "kept");
}

TEST_CASE("No name can be prepared: they differ, and what is within is the user's alone") {
  const TempDir folder;
  std::error_code code;
  const auto one = Temporary::file_beside(folder / "m", code);
  const auto two = Temporary::file_beside(folder / "m", code);
  const auto three = Temporary::path_beside(folder / "m", code);
  REQUIRE(one);
  REQUIRE(two);
  REQUIRE(three);
  CHECK(one->path() != two->path());
  struct stat status {};
  REQUIRE(::stat(three->path().parent_path().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0700);
}

TEST_CASE("A temporary that is dropped, or cannot be put in place, leaves nothing") {
  const TempDir folder;
  std::error_code code;
  { const auto dropped = Temporary::path_beside(folder / "m", code); }
  CHECK(names_in(folder.path()).empty());
  fs::create_directories(folder / "full/inner");
  auto temporary = Temporary::file_beside(folder / "full", code);
  REQUIRE(temporary);
  const auto placed = temporary->put_in_place();
  REQUIRE_FALSE(placed);
  CHECK(placed.error().code == ErrorCode::kCannotWrite);
  CHECK(names_in(folder.path()) == std::vector<std::string>{"full"});
  CHECK_FALSE(Temporary::file_beside(folder / "absent/m", code));
  CHECK(code == std::errc::no_such_file_or_directory);
}

TEST_CASE("A folder is listed in order; one that is missing is an error") {
  const TempDir folder;
  for (const char* name : {"b", "a", "c"}) std::ofstream(folder / name) << name;
  CHECK(names_in(folder.path()) == std::vector<std::string>{"a", "b", "c"});
  CHECK(list_folder(folder / "absent").error().code == ErrorCode::kNotFound);
  CHECK(list_folder(folder / "a").error().code == ErrorCode::kData);
}

}  // namespace
}  // namespace speedo
