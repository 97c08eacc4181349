#include <speedo/base/file.hpp>

#include <filesystem>
#include <fstream>
#include <string>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <speedo/base/folder.hpp>
#include <speedo/base/temporary.hpp>

#include "support/catch.hpp"
#include "support/file_size_limit.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

constexpr std::filesystem::perms kOwnerOnly{0600};

std::span<const std::byte> bytes_of(const std::string& text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

TEST_CASE("An atomic write replaces the file and leaves nothing beside it") {
  const TempDir folder;
  const auto path = folder / "snapshot";
  REQUIRE(write_file_atomically(path, bytes_of("old")));
  REQUIRE(write_file_atomically(path, bytes_of(std::string("new\0x", 5))));
  REQUIRE(read_file(path).value() == std::string("new\0x", 5));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path())) {
    files += entry.is_regular_file() ? 1 : 0;
  }
  REQUIRE(files == 1);
}

TEST_CASE("Writing into a missing folder names the path") {
  const TempDir folder;
  const auto failed = write_file_atomically(folder / "absent/snapshot", bytes_of("x"));
  REQUIRE_FALSE(failed);
  REQUIRE(failed.error().code == ErrorCode::kCannotWrite);
  REQUIRE(failed.error().message.find("absent/snapshot") != std::string::npos);
}

TEST_CASE("A prefix is writable only if its folder exists, and the probe leaves no trace") {
  const TempDir folder;
  REQUIRE(check_prefix_writable((folder / "lenet").string()));
  REQUIRE(std::filesystem::is_empty(folder.path()));
  const auto failed = check_prefix_writable((folder / "absent/lenet").string());
  REQUIRE(failed.error().code == ErrorCode::kCannotWrite);
  REQUIRE(failed.error().message.find("create the folder or change snapshot_prefix") !=
          std::string::npos);
}

TEST_CASE("Where a prefix cannot be written is said in full, with the remedy of the reason") {
  const auto relative = check_prefix_writable("no-such-folder/lenet");
  REQUIRE_FALSE(relative);
  const auto whole = std::filesystem::current_path() / "no-such-folder";
  REQUIRE(relative.error().message.find("'" + whole.string() + "'") != std::string::npos);
  const TempDir folder;
  REQUIRE(write_file_atomically(folder / "file", bytes_of("x")));
  const auto no_folder = check_prefix_writable((folder / "file/lenet").string());
  REQUIRE_FALSE(no_folder);
  REQUIRE(no_folder.error().message.find("Not a directory") != std::string::npos);
  REQUIRE(no_folder.error().message.find("create the folder") == std::string::npos);
}

TEST_CASE("Reading names what is missing, too long or not a file") {
  const TempDir folder;
  REQUIRE(read_file(folder / "absent").error().code == ErrorCode::kNotFound);
  REQUIRE(read_file(folder.path()).error().code == ErrorCode::kData);
  REQUIRE(write_file_atomically(folder / "big", bytes_of("0123456789")));
  REQUIRE(read_file(folder / "big", 9).error().code == ErrorCode::kData);
}

TEST_CASE("A relative path is tried from the working directory, then from the prototxt's folder") {
  const TempDir folder;
  REQUIRE(write_file_atomically(folder / "only-here", bytes_of("x")));
  REQUIRE(resolve_path("only-here", folder.path()) == folder / "only-here");
  REQUIRE(resolve_path("nowhere", folder.path()) == "nowhere");
  REQUIRE(resolve_path("/etc/passwd", folder.path()) == "/etc/passwd");
}

}  // namespace
TEST_CASE("what a link leads to is written, and the link stays") {
  const TempDir folder;
  const auto file = folder / "file", link = folder / "link", second = folder / "second";
  std::filesystem::create_symlink("file", link);
  std::filesystem::create_symlink(link, second);
  for (const std::string text : {"new", "old"}) {
    REQUIRE(write_file_atomically(second, bytes_of(text)));
    CHECK(read_file(file).value() == text);
    CHECK(std::filesystem::is_symlink(link));
    CHECK(std::filesystem::is_symlink(second));
  }
  const int open_file = ::open(file.c_str(), O_RDWR);
  REQUIRE(open_file >= 0);
  const auto name = folder / "name";
  std::filesystem::create_symlink("/proc/self/fd/" + std::to_string(open_file), name);
  REQUIRE(write_file_atomically(name, bytes_of("x")));
  char read[2] = {};
  CHECK(::read(open_file, read, sizeof read) == 1);
  CHECK(read[0] == 'x');
  ::close(open_file);
  CHECK(std::filesystem::is_symlink(name));
}

TEST_CASE("a device or a pipe is written into, and stays what it is") {
  const TempDir folder;
  const auto pipe = folder / "pipe", link = folder / "link";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  std::filesystem::create_symlink(pipe, link);
  const int reader = ::open(pipe.c_str(), O_RDONLY | O_NONBLOCK);
  REQUIRE(reader >= 0);
  int ends[2];
  REQUIRE(::pipe(ends) == 0);
  for (const std::string folder_of_open : {"/proc/self/fd/", "/dev/fd/"}) {
    REQUIRE(write_file_atomically(folder_of_open + std::to_string(ends[1]), bytes_of("x")));
    char read = 0;
    CHECK(::read(ends[0], &read, 1) == 1);
    CHECK(read == 'x');
  }
  ::close(ends[0]);
  ::close(ends[1]);
  for (const auto& path : {pipe, link}) {
    REQUIRE(write_file_atomically(path, bytes_of("x")));
    char read = 0;
    CHECK(::read(reader, &read, 1) == 1);
    CHECK(read == 'x');
  }
  ::close(reader);
  CHECK(std::filesystem::is_fifo(pipe));
  CHECK(std::filesystem::is_symlink(link));
  const auto full = write_file_atomically("/dev/full", bytes_of("x"));
  REQUIRE_FALSE(full);
  CHECK(full.error().code == ErrorCode::kCannotWrite);
  CHECK(std::filesystem::is_character_file("/dev/full"));
  std::error_code code;
  auto temporary = Temporary::file_beside(pipe, code);
  REQUIRE(temporary);
  CHECK_FALSE(temporary->put_in_place());
  CHECK(std::filesystem::is_fifo(pipe));
}

TEST_CASE("A new file has its parts and its mode, and is not written over") {
  const TempDir folder;
  REQUIRE(write_new_file(folder / "secret", {"one", " and ", "two"}, kOwnerOnly));
  CHECK(read_file(folder / "secret").value() == "one and two");
  struct stat status {};
  REQUIRE(::stat((folder / "secret").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  std::filesystem::create_symlink("nowhere", folder / "link");
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  for (const char* name : {"secret", "link", "pipe"}) {
    const auto again = write_new_file(folder / name, {"other"}, kOwnerOnly);
    REQUIRE_FALSE(again);
    CHECK(again.error().code == ErrorCode::kCannotWrite);
    CHECK(again.error().message.find("it exists") != std::string::npos);
  }
  CHECK(read_file(folder / "secret").value() == "one and two");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(list_folder(folder.path())->size() == 3);
}

TEST_CASE("Of a new file that a full disk cuts short nothing is left") {
  const TempDir folder;
  {
    const test::FileSizeLimit full(4);
    const auto written = write_new_file(folder / "secret", {"one", "two"}, kOwnerOnly);
    REQUIRE_FALSE(written);
    CHECK(written.error().code == ErrorCode::kCannotWrite);
    CHECK(written.error().message.find("secret") != std::string::npos);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(write_new_file(folder / "no such folder/x", {"one"}, kOwnerOnly).error().code ==
        ErrorCode::kCannotWrite);
}

}  // namespace speedo
