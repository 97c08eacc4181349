// Files as they come from servers that do as they should: by HTTP, S3 and WebHDFS, and the cache.

#include <atomic>
#include <cstdlib>
#include <sstream>
#include <thread>
#include <vector>

#include <sys/stat.h>

#include "remote/byte_digest.hpp"
#include "remote/remote_server.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

using test::bytes_of;
using test::random_bytes;
using test::RemoteCache;
using test::RemoteServer;

// Set for a test, and as before afterwards.
class Variable {
 public:
  Variable(const char* name, const std::string& value) : name_(name) {
    if (const char* const old = std::getenv(name)) old_ = old;
    ::setenv(name, value.c_str(), 1);
  }
  ~Variable() {
    if (old_) {
      ::setenv(name_, old_->c_str(), 1);
    } else {
      ::unsetenv(name_);
    }
  }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  const char* name_;
  std::optional<std::string> old_;
};

std::string sha256_of(const std::string& bytes) {
  ByteDigest digest(DigestKind::kSha256);
  digest.add(std::as_bytes(std::span(bytes)));
  return digest.finish();
}

TEST_CASE("A file comes whole, be it empty, small, or of several parts") {
  const RemoteServer server;
  RemoteCache cache;
  for (const std::size_t size : {0U, 1U, 99999U, 100000U, 100001U, 1234567U}) {
    const std::string name = "dir/" + std::to_string(size) + ".bin";
    server.put(name, random_bytes(size));
    const auto file = cache.fetch(server.uri(name));
    CAPTURE(size, file ? "" : file.error().message);
    REQUIRE(file);
    CHECK(file->filename() == std::to_string(size) + ".bin");
    CHECK((bytes_of(*file) == random_bytes(size)));
  }
}

TEST_CASE("Files beside each other are so in the cache, which only its user may enter") {
  const RemoteServer server;
  RemoteCache cache;
  server.put("a/images", "1");
  server.put("a/labels", "2");
  server.put("b/images", "3");
  const auto images = cache.fetch(server.uri("a/images"));
  const auto labels = cache.fetch(server.uri("a/labels"));
  const auto others = cache.fetch(server.uri("b/images"));
  REQUIRE((images && labels && others));
  CHECK(images->parent_path() == labels->parent_path());
  CHECK(images->parent_path() != others->parent_path());
  struct stat status {};
  REQUIRE(::stat(cache.folder().c_str(), &status) == 0);
  CHECK((status.st_mode & 0777U) == 0700U);
}

TEST_CASE("A process asks once whether its copy is the file, and fetches what has changed") {
  const RemoteServer server;
  RemoteCache cache;
  server.put("file", "old");
  const std::string uri = server.uri("file");
  REQUIRE(cache.fetch(uri));
  const int first = server.requests();
  REQUIRE(cache.fetch(uri));
  CHECK(server.requests() == first);

  cache.begin();
  REQUIRE(cache.fetch(uri));
  CHECK(server.requests() == first + 1);

  server.put("file", "newer");
  cache.begin();
  const auto newer = cache.fetch(uri);
  REQUIRE(newer);
  CHECK(bytes_of(*newer) == "newer");
}

TEST_CASE("A copy that is not as it was put there is fetched again") {
  const RemoteServer server;
  RemoteCache cache;
  server.put("file", "right");
  const std::string uri = server.uri("file");
  const auto file = cache.fetch(uri);
  REQUIRE(file);
  SECTION("changed") { test::write_bytes(*file, "wrong"); }
  SECTION("cut") { std::filesystem::resize_file(*file, 2); }
  SECTION("gone") { std::filesystem::remove(*file); }
  SECTION("its record is another's, or damaged") {
    for (const auto& each : std::filesystem::recursive_directory_iterator(cache.folder())) {
      if (each.path().extension() == ".file") test::write_bytes(each.path(), "speedo-file 1\n");
    }
    test::write_bytes(*file, "wrong");
  }
  cache.begin();
  const auto again = cache.fetch(uri);
  REQUIRE(again);
  CHECK(bytes_of(*again) == "right");
}

TEST_CASE("A digest in the URI is checked, and then needs no server") {
  const RemoteServer server;
  RemoteCache cache;
  server.put("file", "content");
  const std::string uri = server.uri("file");
  const std::string good = uri + "#sha256=" + sha256_of("content");
  const auto wrong = cache.fetch(uri + "#sha256=" + std::string(64, '0'));
  REQUIRE(!wrong);
  CHECK(wrong.error().code == ErrorCode::kCorrupt);
  CHECK(wrong.error().message.find("SHA-256") != std::string::npos);
  REQUIRE(cache.fetch(good));
  const int first = server.requests();
  cache.begin();
  const auto again = cache.fetch(good);
  REQUIRE(again);
  CHECK(bytes_of(*again) == "content");
  CHECK(server.requests() == first);
}

int noted_parts(const std::filesystem::path& folder) {
  int noted = 0;
  if (!std::filesystem::exists(folder)) return noted;
  for (const auto& each : std::filesystem::recursive_directory_iterator(folder)) {
    if (each.path().extension() != ".parts") continue;
    std::istringstream lines(bytes_of(each.path()));
    for (std::string line; std::getline(lines, line);) noted += line.starts_with("part ") ? 1 : 0;
  }
  return noted;
}

// A process that ends when it has fetched some of the ten parts of "file". Returns how many.
int fetch_some_parts(RemoteCache& cache, const RemoteServer& server) {
  cache.terms.connections = 1;
  cache.terms.stopped = [&] { return noted_parts(cache.folder()) >= 3; };
  REQUIRE(!cache.fetch(server.uri("file")));
  cache.terms.stopped = {};
  const int noted = noted_parts(cache.folder());
  CHECK(noted > 0);
  CHECK(noted < 10);
  return noted;
}

TEST_CASE("What one process had fetched when it ended is not fetched again by the next") {
  const RemoteServer server;
  RemoteCache cache;
  const std::string bytes = random_bytes(1000000);
  server.put("file", bytes);
  const int noted = fetch_some_parts(cache, server);
  const int first = server.requests();
  cache.begin();
  const auto file = cache.fetch(server.uri("file"));
  REQUIRE(file);
  CHECK((bytes_of(*file) == bytes));
  CHECK(server.requests() == first + 1 + 10 - noted);
}

TEST_CASE("Noted parts come again where their file is gone, or has another size") {
  const RemoteServer server;
  RemoteCache cache;
  const std::string bytes = random_bytes(1000000);
  server.put("file", bytes);
  fetch_some_parts(cache, server);
  const std::filesystem::path begun = cache.folder() / "partial";
  std::filesystem::path partial;
  for (const auto& each : std::filesystem::recursive_directory_iterator(begun)) {
    if (each.is_regular_file()) partial = each.path();
  }
  REQUIRE(partial.filename() == "file");
  SECTION("gone") { std::filesystem::remove(partial); }
  SECTION("cut") { std::filesystem::resize_file(partial, 2); }
  SECTION("longer") { std::filesystem::resize_file(partial, bytes.size() + 1); }
  const int first = server.requests();
  cache.begin();
  const auto file = cache.fetch(server.uri("file"));
  REQUIRE(file);
  CHECK((bytes_of(*file) == bytes));
  CHECK(server.requests() == first + 1 + 10);
}

TEST_CASE("Many that want one file at once fetch it once") {
  const RemoteServer server;
  const std::string bytes = random_bytes(500000);
  server.put("file", bytes);
  RemoteCache cache;
  std::atomic<int> good = 0;
  std::vector<std::unique_ptr<RemoteFiles>> processes;
  std::vector<std::thread> threads;
  for (int i = 0; i < 8; ++i) {
    processes.push_back(make_remote_file_cache(cache.folder(), cache.terms));
  }
  for (const auto& process : processes) {
    threads.emplace_back([&] {
      const auto file = process->fetch(server.uri("file"));
      if (file && bytes_of(*file) == bytes) ++good;
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good == 8);
  CHECK(server.requests() == 8 + 5);  // each asks whether the copy is the file; five parts come
}

TEST_CASE("A web server's own ways: no ranges, no HEAD, busy for a while, redirects") {
  const RemoteServer server;
  RemoteCache cache;
  const std::string bytes = random_bytes(250000);
  server.put("file", bytes);
  for (const std::string fault : {"noranges", "nohead", "busy=503x2", "busy=429x2", "redirect=",
                                  "tags=none", "tags=strong", "tags=weak", "zero"}) {
    CAPTURE(fault);
    const auto file = cache.fetch(server.uri(fault + "/file"));
    CAPTURE(file ? "" : file.error().message);
    REQUIRE(file);
    CHECK((bytes_of(*file) == bytes));
    CHECK(server.struck(fault.substr(0, fault.find('='))) > 0);
  }
}

TEST_CASE("A name and password for a web server come from ~/.netrc") {
  const RemoteServer server;
  RemoteCache cache;
  server.put("file", "secret");
  TempDir home;
  const Variable at_home("HOME", home.path().string());
  const std::string uri = server.uri("basic=ann%3Ageheim/file");
  const auto refused = cache.fetch(uri);
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kRefused);
  CHECK(refused.error().message.find("netrc") != std::string::npos);
  test::write_bytes(home / ".netrc", "machine 127.0.0.1 login ann password geheim\n");
  const auto file = cache.fetch(uri);
  REQUIRE(file);
  CHECK(bytes_of(*file) == "secret");
}

TEST_CASE("S3: requests are signed as the published rules want it") {
  const RemoteServer server;
  const std::string bytes = random_bytes(350000);
  const std::string key = "a dir/plus+eq=at@(x)&~_\xc3\xa4#1?%20.bin";
  server.put("bucket/" + key, bytes);
  const Variable endpoint("AWS_ENDPOINT_URL", server.uri("s3"));
  const Variable id("AWS_ACCESS_KEY_ID", "KEYOFTESTS");
  const Variable region("AWS_REGION", "eu-north-1");
  RemoteCache cache;
  SECTION("with the right secret") {
    const Variable secret("AWS_SECRET_ACCESS_KEY", "a secret/of+tests");
    const auto file = cache.fetch("s3://bucket/" + key);
    CAPTURE(file ? "" : file.error().message);
    REQUIRE(file);
    CHECK((bytes_of(*file) == bytes));
    const auto missing = cache.fetch("s3://bucket/other");
    REQUIRE(!missing);
    CHECK(missing.error().code == ErrorCode::kNotFound);
  }
  SECTION("with a session's token") {
    const Variable secret("AWS_SECRET_ACCESS_KEY", "a secret/of+tests");
    const Variable token("AWS_SESSION_TOKEN", "a token/of+tests=");
    const auto file = cache.fetch("s3://bucket/" + key);
    CAPTURE(file ? "" : file.error().message);
    REQUIRE(file);
    CHECK((bytes_of(*file) == bytes));
  }
  SECTION("with a wrong secret") {
    const Variable secret("AWS_SECRET_ACCESS_KEY", "another secret");
    const auto file = cache.fetch("s3://bucket/" + key);
    REQUIRE(!file);
    CHECK(file.error().code == ErrorCode::kRefused);
    CHECK(file.error().message.find("another secret") == std::string::npos);
    CHECK(file.error().message.find("AWS_SECRET_ACCESS_KEY") != std::string::npos);
  }
}

TEST_CASE("WebHDFS: bytes come from the DataNode that the NameNode names") {
  const RemoteServer server;
  const std::string bytes = random_bytes(350000);
  server.put("data/some file+x.mdb", bytes);
  RemoteCache cache;
  const std::string uri = "hdfs://" + server.address() + "/data/some file+x.mdb";
  const auto file = cache.fetch(uri);
  CAPTURE(file ? "" : file.error().message);
  REQUIRE(file);
  CHECK((bytes_of(*file) == bytes));
  cache.begin();
  const int first = server.requests();
  REQUIRE(cache.fetch(uri));
  CHECK(server.requests() == first + 1);
  const auto missing = cache.fetch("hdfs://" + server.address() + "/data/other");
  REQUIRE(!missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
}

TEST_CASE("A file beside a list is the one of that very name") {
  const RemoteServer server;
  server.put("a", "another");
  server.put("a b", "another");
  const std::vector<std::string> names = {"a#1.jpg", "a?1.jpg", "a%20b", "a b#?%.jpg"};
  for (const std::string& name : names) server.put(name, "this: " + name);
  RemoteCache cache;
  for (const std::string scheme : {"http://", "hdfs://"}) {
    for (const std::string& name : names) {
      const auto file = cache.fetch(uri_beside(scheme + server.address() + "/list.txt", name));
      CAPTURE(scheme, name, file ? "" : file.error().message);
      REQUIRE(file);
      CHECK(bytes_of(*file) == "this: " + name);
    }
  }
}

TEST_CASE("A cache that cannot be kept is named") {
  const RemoteServer server;
  server.put("file", "x");
  TempDir folder;
  test::write_bytes(folder / "cache", "a file is in the way");
  const auto files = make_remote_file_cache(folder / "cache", RemoteTerms{});
  const auto file = files->fetch(server.uri("file"));
  REQUIRE(!file);
  CHECK(file.error().code == ErrorCode::kCannotWrite);
  CHECK(file.error().message.find("--data-cache") != std::string::npos);
  const auto nowhere = make_remote_file_cache({}, RemoteTerms{})->fetch(server.uri("file"));
  REQUIRE(!nowhere);
  CHECK(nowhere.error().code == ErrorCode::kUsage);
}

}  // namespace
}  // namespace speedo
