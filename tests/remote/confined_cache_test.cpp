// The cache of a process that reads what others name below its roots alone: its own books lie
// elsewhere.

#include "base/input_roots.hpp"
#include "remote/aws_settings.hpp"
#include "remote/byte_digest.hpp"
#include "remote/partial_file.hpp"
#include "remote/remote_server.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

using test::bytes_of;
using test::random_bytes;
using test::RemoteCache;
using test::RemoteServer;

constexpr std::size_t kSharedBytes = 100000;

// Confined to a folder that holds nothing, and to the addresses of a server.
struct ConfinedReader {
  ConfinedReader() {
    auto made = InputRoots::confine({.folders = {root.path()},
                                     .addresses = {server.uri("")},
                                     .copies = cache.folder()});
    REQUIRE(made);
    roots = std::move(*made);
  }
  void check_fetch(RemoteFiles& files, const std::string& name) const {
    const auto file = files.fetch(server.uri(name));
    CAPTURE(name, file ? "" : file.error().message);
    REQUIRE(file);
    CHECK((bytes_of(*file) == bytes_of(server.file(name))));
  }
  std::unique_ptr<RemoteFiles> another() const {
    return make_remote_file_cache(cache.folder(), cache.terms);
  }
  RemoteServer server;
  RemoteCache cache;
  TempDir root;
  std::unique_ptr<InputRoots> roots;
};

TEST_CASE("Two confined processes share a cache, and a second start fetches nothing again") {
  const ConfinedReader reader;
  reader.server.put("file", random_bytes(kSharedBytes));
  const auto first = reader.another(), second = reader.another();
  reader.check_fetch(*first, "file");
  const int gets = reader.server.gets();
  reader.check_fetch(*second, "file");
  reader.check_fetch(*reader.another(), "file");
  CHECK(reader.server.gets() == gets);
}

TEST_CASE("A confined process needs no server for a copy that has the digest of the URI") {
  const ConfinedReader reader;
  reader.server.put("file", "content");
  ByteDigest digest(DigestKind::kSha256);
  digest.add(std::as_bytes(std::span(std::string_view("content"))));
  const std::string uri = reader.server.uri("file") + "#sha256=" + digest.finish();
  REQUIRE(reader.another()->fetch(uri));
  const int requests = reader.server.requests();
  REQUIRE(reader.another()->fetch(uri));
  CHECK(reader.server.requests() == requests);
}

TEST_CASE("A confined process removes old copies where the cache has a limit, none in use") {
  ConfinedReader reader;
  reader.cache.terms.cache_bytes_max = 2 * kSharedBytes;
  for (const char* name : {"a", "b", "c"}) reader.server.put(name, random_bytes(kSharedBytes));
  reader.check_fetch(*reader.another(), "a");
  const auto user = reader.another();
  reader.check_fetch(*user, "b");
  reader.check_fetch(*reader.another(), "c");
  const auto files = reader.cache.folder() / "files";
  const int gets = reader.server.gets();
  reader.check_fetch(*reader.another(), "b");
  reader.check_fetch(*reader.another(), "c");
  CHECK(reader.server.gets() == gets);
  int held = 0;
  for (const auto& each : std::filesystem::recursive_directory_iterator(files)) {
    held += each.is_regular_file() ? 1 : 0;
  }
  CHECK(held == 2);
}

TEST_CASE("A confined process goes on with the parts of a file that have come") {
  const ConfinedReader reader;
  TempDir folder;
  const PartialFile::Place place{folder / "file", folder / "file.parts", "key"};
  const FileFacts facts{.bytes = 2 * kSharedBytes, .version = "1"};
  {
    const auto begun = PartialFile::open(place, facts, kSharedBytes);
    REQUIRE(begun);
    REQUIRE((*begun)->note(1));
  }
  const auto next = PartialFile::open(place, facts, kSharedBytes);
  REQUIRE(next);
  CHECK((*next)->parts().is_there(1));
}

TEST_CASE("A confined process reads its user's files of AWS' tools") {
  const ConfinedReader reader;
  TempDir home;
  test::write_bytes(home / ".aws/config", "[default]\nregion = eu-west-1\n");
  test::write_bytes(home / ".aws/credentials",
                    "[default]\naws_access_key_id = D\naws_secret_access_key = ds\n");
  const auto settings = read_aws_settings([&](const std::string& name) {
    return name == "HOME" ? home.path().string() : std::string();
  });
  CAPTURE(settings ? "" : settings.error().message);
  REQUIRE((settings && settings->identity));
  CHECK(settings->identity->key_id == "D");
  CHECK(settings->region == "eu-west-1");
}

}  // namespace
}  // namespace speedo
