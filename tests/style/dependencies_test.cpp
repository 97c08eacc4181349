// Each dependency in the rooms that need it, and nowhere else; each named in the README.

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "style/findings.hpp"

namespace speedo {
namespace {

using Words = std::vector<std::string>;

struct Dependency {
  std::string include;  // what its includes begin with
  std::string name;     // in the README
  Words rooms;          // with the folders below them
};

const std::vector<Dependency>& dependencies() {
  static const std::vector<Dependency> all = {
      {"caf/", "CAF", {"actors", "tests/actors"}},
      {"hiredis", "hiredis", {"src/store/redis"}},
      {"cblas", "OpenBLAS", {"src/cpu"}},
      {"omp.h", "oneDNN", {"src/cpu"}},
      {"oneapi/dnnl", "oneDNN", {"src/cpu"}},
      {"hwy/", "Highway", {"src/cpu", "tests/backend", "tests/bench"}},
      {"lmdb.h", "LMDB", {"src/data", "tests/data"}},
      {"hdf5.h", "HDF5", {"src/data", "tests/data"}},
      {"png.h", "libpng", {"src/data", "tests/data"}},
      {"jpeglib.h", "libjpeg", {"src/data", "tests/data"}},
      {"zlib.h", "zlib", {"src/data", "tests/data"}},
      {"xxhash.h", "xxHash", {"src/base"}},
      {"CLI/", "CLI11", {"src/main", "tests/golden", "tests/main", "tests/nets"}},
      {"nlohmann/", "nlohmann/json", {"src/main", "tests"}},
      {"toml++/", "toml++", {"src/main"}},
      {"catch2/", "Catch2", {"tests/support"}},
      {"rapidcheck", "rapidcheck", {"tests"}},
      {"spdlog/", "spdlog", {"src/base"}},
      // Texts are made everywhere but where decisions are, and in the public headers.
      {"fmt/",
       "fmt",
       {"actors", "src/base", "src/core", "src/cpu", "src/data", "src/main", "src/sim", "src/train",
        "tests"}},
      {"google/protobuf/", "Protocol Buffers", {"src/core", "tests"}},
      // The messages made from proto/: Caffe's are what nets and solvers are described by.
      {"caffe.pb.h",
       "Protocol Buffers",
       {"src/core", "src/data", "src/main", "src/train", "tests"}},
      {"speedo.pb.h",
       "Protocol Buffers",
       {"src/main", "src/sim", "src/store", "src/train", "tests"}},
  };
  return all;
}

const Dependency* dependency_of(const std::string& include) {
  const auto found = std::find_if(
      dependencies().begin(), dependencies().end(),
      [&](const Dependency& each) { return include.starts_with(each.include); });
  return found == dependencies().end() ? nullptr : &*found;
}

// The project's own, by the first folder of their path or as lying beside the file.
bool is_own(const std::string& include, const std::set<std::string>& headers) {
  return include.starts_with("speedo/") || headers.count(include) > 0;
}

// The language's and the operating system's.
bool is_system(const std::string& include) {
  static const std::set<std::string> headers = {
      "cxxabi.h", "dlfcn.h", "execinfo.h", "fcntl.h", "ifaddrs.h", "netdb.h",  "poll.h",
      "pthread.h", "pty.h",  "sched.h",    "signal.h", "string.h", "termios.h", "unistd.h"};
  const bool is_standard = include.find_first_of("./") == std::string::npos;
  const bool in_folder = include.starts_with("sys/") || include.starts_with("net/") ||
                         include.starts_with("netinet/") || include.starts_with("arpa/");
  return is_standard || in_folder || headers.count(include) > 0;
}

// All ways in which the project's own headers are written: from each folder above them.
const std::set<std::string>& own_headers() {
  static const std::set<std::string> all = [] {
    std::set<std::string> found;
    for (const SourceFile& file : tree()) {
      if (!file.is_code() && !file.has_suffix(".inl")) continue;
      std::string rest = file.path;
      found.insert(rest);
      for (std::size_t slash = rest.find('/'); slash != std::string::npos; slash = rest.find('/')) {
        rest = rest.substr(slash + 1);
        found.insert(rest);
      }
    }
    return found;
  }();
  return all;
}

TEST_CASE("Third-party headers stay in their rooms, and each is known") {
  Words findings;
  for (const SourceFile& file : tree()) {
    if (!file.is_code() && !file.has_suffix(".inl")) continue;
    for (const std::string& include : file.includes()) {
      if (is_system(include) || is_own(include, own_headers())) continue;
      const Dependency* dependency = dependency_of(include);
      if (dependency == nullptr) {
        findings.push_back(file.path + ":1: includes " + include +
                           ", which this list does not know");
      } else if (std::none_of(dependency->rooms.begin(), dependency->rooms.end(),
                              [&](const std::string& room) { return file.in(room); })) {
        findings.push_back(file.path + ":1: may not include " + include);
      }
    }
  }
  expect_none(findings);
}

TEST_CASE("Public headers include the standard library and one another") {
  Words findings;
  for (const SourceFile& file : tree()) {
    if (!file.is_code() || !file.in("include")) continue;
    for (const std::string& include : file.includes()) {
      const bool standard = include.find_first_of("./") == std::string::npos;
      if (standard || include.starts_with("speedo/")) continue;
      findings.push_back(file.path + ":1: a public header may not include " + include);
    }
  }
  expect_none(findings);
}

TEST_CASE("No dependency is listed that a room does not include, or that the README leaves out") {
  std::string readme;
  for (const SourceFile& file : tree()) {
    if (file.path == "README.md") readme = file.text;
  }
  Words findings;
  for (const Dependency& dependency : dependencies()) {
    if (readme.find(dependency.name) == std::string::npos) {
      findings.push_back("README.md: does not name " + dependency.name);
    }
    for (const std::string& room : dependency.rooms) {
      const bool used = std::any_of(tree().begin(), tree().end(), [&](const SourceFile& file) {
        if (!file.in(room)) return false;
        const Words includes = file.includes();
        return std::any_of(includes.begin(), includes.end(), [&](const std::string& include) {
          return include.starts_with(dependency.include);
        });
      });
      if (!used) findings.push_back(room + ": does not include " + dependency.include);
    }
  }
  expect_none(findings);
}

}  // namespace
}  // namespace speedo
