#include "gate/token_file.hpp"

#include <fstream>
#include <string>
#include <thread>
#include <utility>

#include <sys/stat.h>

#include "support/catch.hpp"
#include "support/file_size_limit.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

struct WrittenToken {
  std::filesystem::path write(const std::string& text, mode_t mode = 0600) {
    const std::filesystem::path path = folder / "token";
    std::ofstream(path) << text;
    ::chmod(path.c_str(), mode);
    return path;
  }
  Error refusal(const std::string& text, mode_t mode = 0600) {
    const auto read = read_token_file(write(text, mode));
    REQUIRE_FALSE(read);
    CHECK(read.error().message.find("'" + (folder / "token").string() + "'") != std::string::npos);
    return read.error();
  }

  TempDir folder;
};

bool says(const Error& error, const std::string& text) {
  CAPTURE(error.message);
  return error.message.find(text) != std::string::npos;
}

}  // namespace

TEST_CASE("a token that is made is read, is for its user alone, and is another each time") {
  TempDir folder;
  for (const char* name : {"a", "b"}) REQUIRE(create_token_file(folder / name));
  struct stat status {};
  REQUIRE(::stat((folder / "a").c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  const auto a = read_token_file(folder / "a"), b = read_token_file(folder / "b");
  REQUIRE(a);
  REQUIRE(b);
  REQUIRE(a->size() == 1);
  CHECK(a->front().reveal().size() >= kTokenLettersMin);
  CHECK(a->front().reveal() != b->front().reveal());
  const auto again = create_token_file(folder / "a");
  REQUIRE_FALSE(again);
  CHECK(again.error().code == ErrorCode::kCannotWrite);
}

TEST_CASE("a token that a full disk cuts short leaves no file, and another can be made") {
  const TempDir folder;
  {
    const test::FileSizeLimit full(20);
    const auto made = create_token_file(folder / "token");
    REQUIRE_FALSE(made);
    CHECK(made.error().code == ErrorCode::kCannotWrite);
  }
  CHECK(std::filesystem::is_empty(folder.path()));
  CHECK(create_token_file(folder / "token"));
}

TEST_CASE("a file may have the token to use and the one that it replaces") {
  WrittenToken folder;
  const std::string first(43, 'a'), second(50, 'b');
  const auto both = read_token_file(folder.write(first + "\r\n" + second));
  REQUIRE(both);
  REQUIRE(both->size() == 2);
  CHECK(both->front().reveal() == first);
  CHECK(both->back().reveal() == second);
}

TEST_CASE("a file that holds no token is refused by its name and by what it lacks") {
  WrittenToken folder;
  const std::string good(43, 'a');
  CHECK(says(folder.refusal(""), "is empty"));
  CHECK(says(folder.refusal("\n"), "is empty"));
  CHECK(says(folder.refusal(std::string(42, 'a')), "too short"));
  CHECK(says(folder.refusal(std::string(kTokenLettersMax + 1, 'a')), "too long"));
  CHECK(says(folder.refusal(std::string(10000, 'a')), "too long"));
  CHECK(says(folder.refusal(good + "\n\n" + good), "too short"));
  CHECK(says(folder.refusal(good + " " + good), "something else"));
  CHECK(says(folder.refusal(good + '\0'), "something else"));
  CHECK(says(folder.refusal(good + "\n" + good + "\n" + good), "3 tokens"));
  const Error open = folder.refusal(good, 0644);
  CHECK(open.code == ErrorCode::kRefused);
  CHECK(says(open, "chmod 600"));
  CHECK(folder.refusal(good, 0620).code == ErrorCode::kRefused);
  CHECK(read_token_file(folder.write(good, 0640)));  // a group's, as managers of secrets make them
  const auto missing = read_token_file(folder.folder / "nothing");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
}

TEST_CASE("a token's named pipe is waited for until somebody has written, or until stopped") {
  TempDir folder;
  const std::filesystem::path path = folder / "pipe";
  REQUIRE(::mkfifo(path.c_str(), 0600) == 0);
  bool stopped = false;
  const auto none = read_token_file(path, [&] { return std::exchange(stopped, true); });
  REQUIRE_FALSE(none);
  CHECK(none.error().code == ErrorCode::kUnavailable);
  const std::string token(kTokenLettersMin, 'a');
  // Open for both, so that it waits for nobody.
  std::thread writer([&] { std::fstream(path, std::ios::in | std::ios::out) << token << '\n'; });
  const auto read = read_token_file(path);
  writer.join();
  REQUIRE(read);
  CHECK(read->front().reveal() == token);
}

}  // namespace speedo
