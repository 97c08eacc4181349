// A cache of limited size: which files leave, and which stay whatever the limit; and the room that
// a disk must have.

#include <array>
#include <atomic>
#include <chrono>
#include <csignal>
#include <map>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.hpp"
#include "remote/file_cache.hpp"
#include "remote/file_lock.hpp"
#include "remote/remote_server.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

using test::bytes_of;
using test::random_bytes;
using test::RemoteCache;
using test::RemoteServer;

constexpr std::size_t kFileBytes = 100000;

// Content tells files of one size apart.
std::string content(char letter) { return letter + random_bytes(kFileBytes - 1); }

void put(const RemoteServer& server, const std::string& letters) {
  for (const char letter : letters) server.put(std::string(1, letter), content(letter));
}

// The letters of the files that lie whole in the cache.
std::string held(const RemoteCache& cache) {
  std::string letters;
  for (const auto& each : fs::recursive_directory_iterator(cache.folder() / "files")) {
    const bool is_file = each.symlink_status().type() == fs::file_type::regular;
    if (is_file) letters += bytes_of(each.path()).front();
  }
  std::ranges::sort(letters);
  return letters;
}

Result<fs::path> fetch_anew(RemoteCache& cache, const RemoteServer& server, char letter) {
  cache.begin();
  return cache.fetch(server.uri(std::string(1, letter)));
}

std::string error_of(const Result<fs::path>& file) {
  return file ? std::string() : file.error().message;
}

TEST_CASE("Beyond its limit a cache gives up what was asked for longest ago") {
  const RemoteServer server;
  put(server, "abcd");
  RemoteCache cache;
  cache.terms.cache_bytes_max = 3 * kFileBytes + 10;
  for (const char letter : {'a', 'b', 'c', 'a', 'd'}) {
    const auto file = fetch_anew(cache, server, letter);
    INFO(error_of(file));
    REQUIRE(file);
    CHECK((bytes_of(*file) == content(letter)));
  }
  CHECK(held(cache) == "acd");
  // Nothing of it is left behind, and it can come again.
  for (const auto& each : fs::recursive_directory_iterator(cache.folder() / "records")) {
    CHECK(each.path().stem() != "b");
  }
  REQUIRE(fetch_anew(cache, server, 'b'));
  CHECK(held(cache) == "abd");
}

TEST_CASE("What an earlier process without a limit left counts, and leaves") {
  const RemoteServer server;
  put(server, "abcd");
  RemoteCache cache;
  for (const char letter : {'a', 'b', 'c'}) REQUIRE(fetch_anew(cache, server, letter));
  CHECK(held(cache) == "abc");
  cache.terms.cache_bytes_max = 2 * kFileBytes;
  REQUIRE(fetch_anew(cache, server, 'd'));
  CHECK(held(cache) == "cd");
}

TEST_CASE("Small files make some more room than must be") {
  const RemoteServer server;
  put(server, "a");
  RemoteCache cache;
  for (int i = 0; i < 100; ++i) {
    const std::string name = "small/" + std::to_string(i);
    server.put(name, random_bytes(1000));
    REQUIRE(cache.fetch(server.uri(name)));
  }
  cache.terms.cache_bytes_max = 2 * kFileBytes - 1000;
  REQUIRE(fetch_anew(cache, server, 'a'));
  CHECK(held(cache).size() == 1 + 86);
}

TEST_CASE("A file in use stays, whoever uses it, and none comes that has no room beside it") {
  const RemoteServer server;
  put(server, "abc");
  RemoteCache cache;
  cache.terms.cache_bytes_max = 2 * kFileBytes;
  auto first = make_remote_file_cache(cache.folder(), cache.terms);
  const auto a = first->fetch(server.uri("a"));
  REQUIRE(a);
  REQUIRE(fetch_anew(cache, server, 'b'));
  const auto refused = cache.fetch(server.uri("c"));
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kFull);
  CHECK(refused.error().message.find("--data-cache-limit") != std::string::npos);
  CHECK(refused.error().message.find("in use") != std::string::npos);
  CHECK(held(cache) == "ab");

  REQUIRE(fetch_anew(cache, server, 'c'));  // b is in use no longer
  CHECK(held(cache) == "ac");
  CHECK((bytes_of(*a) == content('a')));
  first.reset();
  REQUIRE(fetch_anew(cache, server, 'b'));
  CHECK(held(cache).find('b') != std::string::npos);
}

TEST_CASE("What another process uses stays until it ends, be it killed") {
  const RemoteServer server;
  put(server, "ab");
  RemoteCache cache;
  cache.terms.cache_bytes_max = kFileBytes + 10;
  int ready[2];
  REQUIRE(::pipe(ready) == 0);
  const pid_t other = ::fork();
  REQUIRE(other >= 0);
  if (other == 0) {
    const auto files = make_remote_file_cache(cache.folder(), cache.terms);
    const char done = files->fetch(server.uri("a")) ? 'y' : 'n';
    const bool told = ::write(ready[1], &done, 1) == 1;
    while (told) ::pause();
    ::_exit(1);
  }
  char done = '?';
  REQUIRE(::read(ready[0], &done, 1) == 1);
  CHECK(done == 'y');
  const auto refused = fetch_anew(cache, server, 'b');
  ::kill(other, SIGKILL);
  REQUIRE(::waitpid(other, nullptr, 0) == other);
  ::close(ready[0]);
  ::close(ready[1]);
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kFull);
  const auto file = fetch_anew(cache, server, 'b');
  INFO(error_of(file));
  REQUIRE(file);
  CHECK(held(cache) == "b");
}

TEST_CASE("A file that is larger than the limit removes nothing") {
  const RemoteServer server;
  put(server, "a");
  server.put("large", random_bytes(3 * kFileBytes));
  RemoteCache cache;
  cache.terms.cache_bytes_max = 2 * kFileBytes;
  REQUIRE(fetch_anew(cache, server, 'a'));
  cache.begin();
  const auto refused = cache.fetch(server.uri("large"));
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kFull);
  CHECK(held(cache) == "a");
}

TEST_CASE("Only what is the cache's own leaves, or counts") {
  const RemoteServer server;
  put(server, "abc");
  RemoteCache cache;
  cache.terms.cache_bytes_max = kFileBytes + 10;
  const auto a = fetch_anew(cache, server, 'a');
  REQUIRE(a);
  const fs::path beside = a->parent_path() / "mine", elsewhere = cache.folder() / "notes";
  test::write_bytes(beside, content('m'));
  test::write_bytes(elsewhere, content('n'));
  // A record says nothing of a file that is not as it was, nor of where a link leads.
  const fs::path records = cache.folder() / "records" / a->parent_path().filename();
  fs::copy_file(records / "a.file", records / "mine.file");
  fs::create_symlink(elsewhere, a->parent_path() / "link");
  fs::copy_file(records / "a.file", records / "link.file");
  test::write_bytes(records / "other.parts", "speedo-parts 1\n");
  REQUIRE(fetch_anew(cache, server, 'b'));
  CHECK(!fs::exists(*a));
  test::write_bytes(a->parent_path() / "b", content('x'));  // the user's own now
  REQUIRE(fetch_anew(cache, server, 'c'));
  CHECK(held(cache) == "cmx");
  CHECK((bytes_of(elsewhere) == content('n')));
  CHECK(fs::is_symlink(a->parent_path() / "link"));
}

TEST_CASE("What has come of a file that nobody waits for any more leaves like the others") {
  const RemoteServer server;
  put(server, "ab");
  server.put("half", random_bytes(5 * kFileBytes));
  RemoteCache cache;
  cache.terms.cache_bytes_max = 6 * kFileBytes;
  cache.terms.connections = 1;
  std::atomic<int> asked = 0;
  cache.terms.stopped = [&] { return ++asked > 40; };
  REQUIRE(!cache.fetch(server.uri("half")));
  cache.terms.stopped = {};
  const auto halves = [&] {
    std::size_t count = 0;
    for (const auto& each : fs::recursive_directory_iterator(cache.folder() / "partial")) {
      count += each.is_regular_file() ? 1 : 0;
    }
    return count;
  };
  REQUIRE(halves() == 1);
  REQUIRE(fetch_anew(cache, server, 'a'));
  CHECK(halves() == 1);  // it has room
  REQUIRE(fetch_anew(cache, server, 'b'));
  CHECK(halves() == 0);
  CHECK(held(cache) == "ab");
}

TEST_CASE("What a process left that was killed before it wrote the record leaves first") {
  const RemoteServer server;
  put(server, "abc");
  RemoteCache cache;
  const auto a = fetch_anew(cache, server, 'a');
  REQUIRE(a);
  REQUIRE(fetch_anew(cache, server, 'b'));
  const fs::path folder = a->parent_path().filename();
  const fs::path records = cache.folder() / "records" / folder;
  // As it is between the file's way into its place and its record; of another one, as it is before
  // the first line of the parts' record; and a file of the user's, which no lock is beside.
  REQUIRE(fs::remove(records / "b.file"));
  const fs::path begun = cache.folder() / "partial" / folder / "begun";
  test::write_bytes(begun, content('p'));
  test::write_bytes(records / "begun.parts", "");
  test::write_bytes(records / "begun.lock", "");
  const fs::path mine = a->parent_path() / "mine";
  test::write_bytes(mine, content('m'));
  cache.terms.cache_bytes_max = 2 * kFileBytes + 10;
  REQUIRE(fetch_anew(cache, server, 'c'));
  CHECK(held(cache) == "acm");
  CHECK(!fs::exists(begun));
  for (const char* record : {"begun.parts", "begun.lock", "b.lock"}) {
    CHECK(!fs::exists(records / record));
  }
}

// The names that leave some folders, in the order in which they do.
class LeavingNames {
 public:
  void watch(const fs::path& folder, std::uint32_t how) {
    REQUIRE(::inotify_add_watch(events_.get(), folder.c_str(), how) >= 0);
  }
  // Those since the last call.
  std::vector<std::string> take() {
    std::vector<std::string> names;
    alignas(inotify_event) std::array<char, 16384> buffer{};
    for (;;) {
      const ssize_t count = ::read(events_.get(), buffer.data(), buffer.size());
      if (count <= 0) return names;
      for (ssize_t at = 0; at < count;) {
        const auto* event = reinterpret_cast<const inotify_event*>(buffer.data() + at);
        names.emplace_back(event->name);
        at += static_cast<ssize_t>(sizeof(inotify_event) + event->len);
      }
    }
  }

 private:
  const Descriptor events_{::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)};
};

TEST_CASE("A record leaves before its file, be that removed or put in its place") {
  const RemoteServer server;
  put(server, "ab");
  RemoteCache cache;
  cache.terms.cache_bytes_max = kFileBytes + 10;
  const auto a = fetch_anew(cache, server, 'a');
  REQUIRE(a);
  const fs::path folder = a->parent_path().filename();
  LeavingNames leaving;
  leaving.watch(cache.folder() / "records" / folder, IN_DELETE);
  leaving.watch(cache.folder() / "files" / folder, IN_DELETE);
  leaving.watch(cache.folder() / "partial" / folder, IN_MOVED_FROM);
  REQUIRE(fetch_anew(cache, server, 'b'));
  CHECK(leaving.take() == std::vector<std::string>{"a.file", "a", "a.lock", "b.parts", "b"});
}

TEST_CASE("A disk needs room only for what of a file has not come yet") {
  const TempDir folder;
  const auto cache = FileCache::open(folder / "cache", 0);
  REQUIRE(cache);
  const auto begun = cache->entry(*parse_uri("http://host/begun"));
  const auto other = cache->entry(*parse_uri("http://host/other"));
  REQUIRE((begun && other));
  const auto lock = cache->lock(*begun, {});
  REQUIRE(lock);
  // Others may write to the disk meanwhile, but less than half of what has come.
  constexpr off_t kComeBytes = off_t{256} << 20U;
  const Descriptor partial(::open(begun->partial.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  REQUIRE(::posix_fallocate(partial.get(), 0, kComeBytes) == 0);
  const std::uint64_t bytes = fs::space(cache->folder()).available + kComeBytes / 2;
  CHECK(cache->make_room(*begun, bytes, {}));
  const auto refused = cache->make_room(*other, bytes, {});
  REQUIRE(!refused);
  CHECK(refused.error().code == ErrorCode::kFull);
}

TEST_CASE("Whoever counts the files of a cache finds each of them") {
  const RemoteServer server;
  const std::string letters = "abcdefgh";
  put(server, letters);
  RemoteCache cache;
  std::atomic<bool> is_over = false;
  int found_whole = 0, found_coming = 0, without_record = 0;
  std::thread counting([&] {
    const auto count = [&](const char* kind, const char* ending) {
      int found = 0;
      for (const auto& each : fs::recursive_directory_iterator(cache.folder() / kind)) {
        if (!each.is_regular_file()) continue;
        const fs::path folder = cache.folder() / "records" / each.path().parent_path().filename();
        if (!fs::exists(folder / (each.path().filename().string() + ending))) ++without_record;
        ++found;
      }
      return found;
    };
    while (!is_over) {
      // Others, who ask for it now and then, are to find it free.
      std::this_thread::sleep_for(std::chrono::milliseconds{5});
      const auto room = lock_file(cache.folder() / "room", {});
      if (!room || !fs::exists(cache.folder() / "files")) continue;
      found_coming += count("partial", ".parts");
      found_whole += count("files", ".file");
    }
  });
  int good = 0;
  for (int round = 0; round < 10; ++round) {
    for (const char letter : letters) {
      if (fetch_anew(cache, server, letter)) ++good;
    }
    const auto room = lock_file(cache.folder() / "room", {});
    fs::remove_all(cache.folder() / "files");
  }
  is_over = true;
  counting.join();
  CHECK(good == 10 * static_cast<int>(letters.size()));
  CHECK(found_whole > 0);
  CHECK(found_coming > 0);
  CHECK(without_record == 0);
}

TEST_CASE("Processes that fetch at once keep what they use, and the limit") {
  const RemoteServer server;
  const std::string letters = "abcdefghijkl";
  put(server, letters);
  RemoteCache cache;
  constexpr int kProcesses = 4, kRounds = 25;
  cache.terms.cache_bytes_max = (kProcesses + 1) * kFileBytes;
  std::atomic<int> good = 0;
  std::vector<std::thread> threads;
  for (int i = 0; i < kProcesses; ++i) {
    threads.emplace_back([&, i] {
      Random random(static_cast<std::uint64_t>(i));
      for (int round = 0; round < kRounds; ++round) {
        const char letter = letters[random.below(letters.size())];
        const auto process = make_remote_file_cache(cache.folder(), cache.terms);
        const auto file = process->fetch(server.uri(std::string(1, letter)));
        if (file && bytes_of(*file) == content(letter)) ++good;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(good == kProcesses * kRounds);
  CHECK(held(cache).size() <= kProcesses + 1);
  CHECK(server.gets() > static_cast<int>(letters.size()));  // some had to come again
  CHECK(fs::is_empty(cache.folder() / "uses"));
}

TEST_CASE("A cache in a folder that takes no file is refused as one, and as nothing else") {
  const auto cache = FileCache::open("/sys", 0);
  REQUIRE_FALSE(cache);
  INFO(cache.error().message);
  CHECK(cache.error().code == ErrorCode::kCannotWrite);
  CHECK(cache.error().message.find("--data-cache") != std::string::npos);
  CHECK(cache.error().message.find("snapshot") == std::string::npos);
}

}  // namespace
}  // namespace speedo
