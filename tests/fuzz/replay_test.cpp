// Every file of the corpora through its target, as the fuzzers run it: what crashed once would
// again.
#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include <speedo/base/file.hpp>
#include <speedo/base/folder.hpp>

#include "fuzz/fuzz_target.hpp"
#include "fuzz/seeds.hpp"
#include "support/catch.hpp"

namespace speedo::fuzz {

std::vector<Target>& targets() {
  static std::vector<Target> all;
  return all;
}

namespace {

const std::filesystem::path& corpora() {
  static const std::filesystem::path folder = std::string(SPEEDO_SOURCE_DIR) + "/tests/fuzz/corpus";
  return folder;
}

// The files of a target's corpus; it has at least one.
std::vector<std::filesystem::path> corpus_of(const Target& target) {
  const auto files = list_folder(corpora() / target.name);
  CAPTURE(target.name);
  REQUIRE(files);
  REQUIRE_FALSE(files->empty());
  return *files;
}

}  // namespace

TEST_CASE("every file of every corpus is taken or refused") {
  be_silent();
  std::size_t count = 0;
  for (const Target& target : targets()) {
    for (const std::filesystem::path& file : corpus_of(target)) {
      INFO(file.string());
      const auto content = read_file(file);
      REQUIRE(content);
      target.run(std::as_bytes(std::span(content->data(), content->size())));
      ++count;
    }
  }
  CHECK(count > 2 * targets().size());
}

TEST_CASE("what our own writers make now is taken or refused") {
  be_silent();
  // A folder to write it to, for a corpus to begin with.
  if (const char* folder = std::getenv("SPEEDO_FUZZ_SEEDS")) write_seeds(folder);
  for (const Seed& seed : all_seeds()) {
    CAPTURE(seed.target);
    const auto target = std::find_if(
        targets().begin(), targets().end(),
        [&](const Target& each) { return each.name == seed.target; });
    REQUIRE(target != targets().end());
    target->run(std::as_bytes(std::span(seed.bytes.data(), seed.bytes.size())));
  }
}

TEST_CASE("every corpus has a target, and a target its corpus") {
  std::set<std::string> folders, names;
  for (const auto& entry : std::filesystem::directory_iterator(corpora())) {
    folders.insert(entry.path().filename().string());
  }
  for (const Target& target : targets()) names.insert(target.name);
  CHECK(names.size() > 15);
  CHECK(folders == names);
}

TEST_CASE("every target takes nothing, and what is much like nothing") {
  be_silent();
  for (const Target& target : targets()) {
    CAPTURE(target.name);
    target.run({});
    for (const std::size_t size : {1, 2, 3, 4, 8, 64, 4096}) {
      for (const int value : {0, 1, 2, 3, 127, 128, 255}) {
        const std::vector<std::byte> bytes(size, static_cast<std::byte>(value));
        target.run(bytes);
      }
    }
  }
}

}  // namespace speedo::fuzz
