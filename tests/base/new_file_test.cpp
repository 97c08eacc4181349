#include "base/new_file.hpp"

#include <filesystem>

#include <sys/stat.h>

#include <speedo/base/file.hpp>

#include "support/catch.hpp"
#include "support/file_size_limit.hpp"
#include "support/temp_dir.hpp"

namespace speedo {

TEST_CASE("A new file has its parts and its mode, and is not written over") {
  const TempDir folder;
  REQUIRE(write_new_file(folder / "secret", {"one", " and ", "two"}, 0600));
  CHECK(read_file(folder / "secret").value() == "one and two");
  struct stat status {};
  REQUIRE(::stat((folder / "secret").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  std::filesystem::create_symlink("nowhere", folder / "link");
  for (const char* name : {"secret", "link"}) {
    const auto again = write_new_file(folder / name, {"other"}, 0600);
    REQUIRE_FALSE(again);
    CHECK(again.error().code == ErrorCode::kCannotWrite);
    CHECK(again.error().message.find("it exists") != std::string::npos);
  }
  CHECK(read_file(folder / "secret").value() == "one and two");
  CHECK(std::filesystem::is_symlink(folder / "link"));
}

TEST_CASE("Of a new file that a full disk cuts short nothing is left") {
  const TempDir folder;
  {
    const test::FileSizeLimit full(4);
    const auto written = write_new_file(folder / "secret", {"one", "two"}, 0600);
    REQUIRE_FALSE(written);
    CHECK(written.error().code == ErrorCode::kCannotWrite);
    CHECK(written.error().message.find("secret") != std::string::npos);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(write_new_file(folder / "no such folder/x", {"one"}, 0600).error().code ==
        ErrorCode::kCannotWrite);
}

}  // namespace speedo
