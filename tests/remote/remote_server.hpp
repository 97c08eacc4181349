#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>
#include <speedo/base/random.hpp>

#include "remote/remote_file_cache.hpp"
#include "support/http_get.hpp"
#include "support/process.hpp"
#include "support/temp_dir.hpp"

namespace speedo::test {

inline std::string bytes_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

inline void write_bytes(const std::filesystem::path& file, const std::string& bytes) {
  std::filesystem::create_directories(file.parent_path());
  std::ofstream(file, std::ios::binary) << bytes;
}

// The same for the same size.
inline std::string random_bytes(std::size_t count) {
  Random random(count);
  std::string bytes(count, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random.below(256));
  return bytes;
}

// tests/remote/file_server.py, serving a folder of its own.
class RemoteServer {
 public:
  explicit RemoteServer(const std::vector<std::string>& arguments = {})
      : process_(command(arguments), folder_ / "log") {
    for (int tries = 0; process_.output().find('\n') == std::string::npos; ++tries) {
      if (tries > 1500 || !process_.running()) {
        throw std::runtime_error("the file server does not start: " + process_.errors());
      }
      std::this_thread::sleep_for(std::chrono::milliseconds{20});
    }
    port_ = static_cast<std::uint16_t>(std::stoi(process_.output()));
  }

  std::uint16_t port() const { return port_; }
  std::string address() const { return "127.0.0.1:" + std::to_string(port_); }
  std::string uri(const std::string& path) const { return "http://" + address() + "/" + path; }
  std::filesystem::path file(const std::string& name) const { return folder_ / "served/" / name; }
  void put(const std::string& name, const std::string& bytes) const {
    write_bytes(file(name), bytes);
  }
  // How often the fault has struck.
  int struck(const std::string& fault) const { return number("/_struck", fault); }
  // HEAD and GET together, without those that ask this.
  int requests() const {
    const int asked = number("/_requests", "HEAD") + number("/_requests", "GET");
    return asked - asking_;
  }
  // GET alone, likewise.
  int gets() const {
    const int asked = number("/_requests", "GET");
    return asked - asking_;
  }

 private:
  std::vector<std::string> command(const std::vector<std::string>& arguments) const {
    std::filesystem::create_directories(folder_ / "served");
    std::vector<std::string> words = {SPEEDO_PYTHON, SPEEDO_FILE_SERVER,
                                      (folder_ / "served").string()};
    words.insert(words.end(), arguments.begin(), arguments.end());
    return words;
  }
  int number(const std::string& path, const std::string& name) const {
    asking_ += path == "/_requests" ? 1 : 0;
    const auto counts = nlohmann::json::parse(http_get(port_, path).body);
    return counts.value(name, 0);
  }

  TempDir folder_;
  Process process_;
  std::uint16_t port_ = 0;
  mutable int asking_ = 0;
};

// A cache in a folder of its own, with little patience.
class RemoteCache {
 public:
  RemoteCache() {
    terms.connect_timeout = std::chrono::milliseconds{2000};
    terms.stalled_for = std::chrono::seconds{1};
    terms.attempts_max = 4;
    terms.backoff_first = std::chrono::milliseconds{10};
    terms.backoff_max = std::chrono::milliseconds{40};
    terms.part_bytes = 100000;
    terms.progress_bytes = 10000;
  }
  // Another process would begin so.
  void begin() { files_ = make_remote_file_cache(folder(), terms); }
  Result<std::filesystem::path> fetch(const std::string& uri) {
    if (!files_) begin();
    return files_->fetch(uri);
  }
  std::filesystem::path folder() const { return folder_ / "cache"; }

  RemoteTerms terms;  // to be set before the first fetch()

 private:
  TempDir folder_;
  std::unique_ptr<RemoteFiles> files_;
};

}  // namespace speedo::test
