// Each dependency in the rooms that need it, and nowhere else; each named in the README. Rooms
// include the rooms below them.

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <string_view>
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
      {"hiredis", "hiredis", {"src/store/redis", "tests/store", "tests/support"}},
      {"openssl/", "OpenSSL", {"src/gate", "src/remote", "tests/gate"}},
      {"curl/", "libcurl", {"src/remote"}},
      {"cblas", "OpenBLAS", {"src/cpu/gemm"}},
      {"omp.h", "oneDNN", {"src/cpu/onednn"}},
      {"oneapi/dnnl", "oneDNN", {"src/cpu/onednn"}},
      {"hwy/", "Highway", {"src/cpu", "tests/backend", "tests/bench"}},
      {"cuda_runtime_api.h", "CUDA", {"src/gpu/driver"}},
      {"cublasLt.h", "cuBLAS", {"src/gpu/cublas"}},
      {"cudnn.h", "cuDNN", {"src/gpu/cudnn"}},
      {"lmdb.h", "LMDB", {"src/data", "tests/data"}},
      {"leveldb/", "LevelDB", {"src/data/leveldb", "tests/data"}},
      {"hdf5.h", "HDF5", {"src/data", "tests/data"}},
      {"png.h", "libpng", {"src/data", "tests/data"}},
      {"jpeglib.h", "libjpeg", {"src/data", "tests/data"}},
      {"jerror.h", "libjpeg", {"src/data"}},
      {"webp/", "libwebp", {"src/data", "tests/data"}},
      {"tiffio.h", "libtiff", {"src/data", "tests/data"}},
      {"zlib.h", "zlib", {"src/data", "tests/data"}},
      {"prometheus/", "prometheus-cpp", {"src/monitor"}},
      {"civetweb.h", "CivetWeb", {"src/monitor"}},
      {"xxhash.h", "xxHash", {"src/base"}},
      {"CLI/", "CLI11", {"src/cli/options", "tests/golden", "tests/nets"}},
      {"nlohmann/",
       "nlohmann/json",
       {"src/cli", "src/doctor", "src/formats", "src/main", "src/measure", "src/monitor",
        "src/remote", "src/tools", "tests"}},
      {"toml++/", "toml++", {"src/cli/options"}},
      {"catch2/", "Catch2", {"tests/support"}},
      {"rapidcheck", "rapidcheck", {"tests"}},
      {"spdlog/", "spdlog", {"src/base"}},
      // Texts are made everywhere but where decisions are, and in the public headers.
      {"fmt/",
       "fmt",
       {"actors", "src/base", "src/checkpoint", "src/cli", "src/core", "src/cpu", "src/data",
        "src/doctor", "src/formats", "src/gate", "src/gpu", "src/local", "src/main", "src/measure",
        "src/monitor", "src/remote", "src/sim", "src/tools", "src/train", "tests"}},
      {"google/protobuf/", "Protocol Buffers", {"src/core", "tests"}},
      // The messages made from proto/: Caffe's are what nets and solvers are described by.
      {"caffe.pb.h",
       "Protocol Buffers",
       {"src/checkpoint", "src/cli", "src/core", "src/data", "src/formats", "src/main",
        "src/measure", "src/sim", "src/tools", "src/train", "tests"}},
      {"onnx.pb.h", "Protocol Buffers", {"src/formats"}},
      {"speedo.pb.h",
       "Protocol Buffers",
       {"src/checkpoint", "src/sim", "src/store", "src/train", "tests"}},
      {"tensorboard.pb.h", "Protocol Buffers", {"src/cli", "tests"}},
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
      "cxxabi.h", "dlfcn.h",   "execinfo.h", "fcntl.h", "ifaddrs.h", "malloc.h",
      "netdb.h",  "poll.h",    "pthread.h",  "pty.h",   "sched.h",   "signal.h",
      "spawn.h",  "string.h", "termios.h", "ucontext.h", "unistd.h"};
  const bool is_standard = include.find_first_of("./") == std::string::npos;
  const bool in_folder = include.starts_with("sys/") || include.starts_with("net/") ||
                         include.starts_with("linux/") ||
                         include.starts_with("netinet/") || include.starts_with("arpa/") ||
                         include.starts_with("sanitizer/");
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
  const std::string& readme = file_named("README.md").text;
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

// Which rooms a room may include, by the first folder of the include path. A room is its sources
// and the contracts in include/speedo.
const std::map<std::string, std::set<std::string>>& rooms_below() {
  static const std::map<std::string, std::set<std::string>> all = {
      {"base", {}},
      {"backend", {"base"}},
      {"codec", {"base"}},
      {"core", {"backend", "base"}},
      {"cpu", {"backend", "base", "core"}},
      {"gpu", {"backend", "base"}},
      {"sandbox", {"base"}},
      {"data", {"backend", "base", "core", "sandbox"}},
      {"store", {"base", "codec", "gate"}},
      {"train", {"backend", "base", "codec", "core", "store"}},
      {"strategies", {"base", "codec", "train"}},
      {"gate", {"base"}},
      {"remote", {"base"}},
      {"actors", {"backend", "base", "core", "gate", "store", "train"}},
      {"sim", {"backend", "base", "checkpoint", "codec", "core", "data", "store", "train"}},
      {"checkpoint", {"base", "core", "data", "train"}},
      {"cli", {"base", "checkpoint", "codec", "core", "cpu", "data", "gpu", "store", "train"}},
      {"local", {"base", "checkpoint", "cli", "gate", "store"}},
      {"monitor", {"base", "cli", "train"}},
      {"measure", {"backend", "base", "cli", "codec", "core", "local", "sim", "store", "train"}},
      {"doctor", {"backend", "base", "checkpoint", "cli", "core", "cpu", "measure", "store"}},
      {"tools", {"backend", "base", "cli", "core", "data", "local"}},
      {"formats", {"backend", "base", "core", "data"}},
      {"main",
       {"actors", "backend", "base", "checkpoint", "cli", "core", "cpu", "data", "doctor",
        "formats", "gate", "gpu", "local", "measure", "monitor", "remote", "sim", "store", "tools",
        "train"}},
  };
  return all;
}

// The room that a file of the programs belongs to; empty for others.
std::string room_of(const SourceFile& file) {
  std::size_t start = 0;
  for (const std::string_view folder : {"include/speedo/", "src/"}) {
    if (file.path.starts_with(folder)) start = folder.size();
  }
  const std::string room = file.path.substr(start, file.path.find('/', start) - start);
  return start > 0 || room == "actors" || room == "strategies" ? room : "";
}

TEST_CASE("Every room is known, and includes only the rooms below it") {
  Words findings;
  for (const SourceFile& file : tree()) {
    const std::string room = room_of(file);
    if (!file.is_code() || room.empty()) continue;
    const auto known = rooms_below().find(room);
    if (known == rooms_below().end()) {
      findings.push_back(file.path + ":1: lies in a room that this list does not know");
      continue;
    }
    for (std::string include : file.includes()) {
      if (include.starts_with("speedo/")) include = include.substr(7);
      const std::string other = include.substr(0, include.find('/'));
      const bool is_room = other != include && rooms_below().count(other) != 0;
      if (is_room && other != room && known->second.count(other) == 0) {
        findings.push_back(file.path + ":1: " + room + " may not include " + include);
      }
    }
  }
  expect_none(findings);
}

TEST_CASE("No room can include itself by way of others") {
  std::set<std::string> done;  // rooms all of whose rooms below are done
  for (bool found = true; found;) {
    found = false;
    for (const auto& [room, below] : rooms_below()) {
      if (done.count(room) != 0) continue;
      if (!std::includes(done.begin(), done.end(), below.begin(), below.end())) continue;
      done.insert(room);
      found = true;
    }
  }
  Words findings;
  for (const auto& [room, below] : rooms_below()) {
    if (done.count(room) == 0) findings.push_back(room + ": is in a cycle, or above one");
  }
  expect_none(findings);
}

}  // namespace
}  // namespace speedo
