#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <list>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "support/catch.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

#include <speedo/store/redis_store.hpp>

namespace speedo::test {

// The programs under test: those of this build, or of the folder that SPEEDO_BIN_DIR names.
inline std::string program(const std::string& name) {
  const char* folder = std::getenv("SPEEDO_BIN_DIR");
  return std::string(folder != nullptr ? folder : SPEEDO_BUILT_PROGRAMS) + "/" + name;
}

// One job with real programs: a redis-server, at most one master at a time, any number of workers.
class Cluster {
 public:
  explicit Cluster(int max_iteration) {
    std::ofstream(folder_ / "solver.prototxt")
        << "base_lr: 0.01 lr_policy: \"fixed\" momentum: 0.9 display: 100 random_seed: 3\n"
        << "max_iter: " << max_iteration << " snapshot_prefix: \"" << (folder_ / "snap").string()
        << "\"\n"
        << R"(net_param { name: "tiny"
          layer { name: "data" type: "DummyData" top: "data" top: "target"
                  dummy_data_param { shape { dim: 64 dim: 64 } shape { dim: 64 dim: 8 }
                                     data_filler { type: "gaussian" std: 1 }
                                     data_filler { type: "constant" value: 0.5 } } }
          layer { name: "ip1" type: "InnerProduct" bottom: "data" top: "ip1"
                  inner_product_param { num_output: 64 weight_filler { type: "xavier" } } }
          layer { name: "ip2" type: "InnerProduct" bottom: "ip1" top: "ip2"
                  inner_product_param { num_output: 8 weight_filler { type: "xavier" } } }
          layer { name: "loss" type: "EuclideanLoss" bottom: "ip2" bottom: "target"
                  top: "loss" } })";
  }

  // Starts a master; `extra`: more arguments.
  Process& start_master(const std::vector<std::string>& extra = {}) {
    std::vector<std::string> command{program("speedo-master"), "--solver",
                                     (folder_ / "solver.prototxt").string(), "--redis",
                                     redis_.tcp_uri(), "--address-file",
                                     (folder_ / "address").string(), "--json"};
    command.insert(command.end(), extra.begin(), extra.end());
    std::filesystem::remove(folder_ / "address");
    master_.emplace_back(std::move(command), log("master"));
    return master_.back();
  }

  // The running master's address; a test that waits in vain fails.
  std::string address() {
    for (int i = 0; i < 3000; ++i) {
      std::ifstream file(folder_ / "address");
      std::string text;
      if (std::getline(file, text) && !text.empty()) return text;
      if (!master_.back().running()) break;
      std::this_thread::sleep_for(std::chrono::milliseconds{10});
    }
    FAIL("no master listens: " << master_.back().errors());
    return {};
  }

  Process& start_worker(const std::string& master, const std::vector<std::string>& extra = {}) {
    std::vector<std::string> command{program("speedo-worker"), "--master", master};
    command.insert(command.end(), extra.begin(), extra.end());
    workers_.emplace_back(std::move(command), log("worker"));
    return workers_.back();
  }

  // The last line of the master's standard output.
  static nlohmann::json result(const Process& master) {
    const std::string text = master.output();
    INFO("standard output: " << text << "\nstandard error: " << master.errors());
    REQUIRE_FALSE(text.empty());
    const std::size_t end = text.find_last_not_of('\n');
    const std::size_t begin = text.rfind('\n', end);
    const std::size_t from = begin == std::string::npos ? 0 : begin + 1;
    auto parsed = nlohmann::json::parse(text.substr(from, end - from + 1), nullptr, false);
    REQUIRE_FALSE(parsed.is_discarded());
    return parsed;
  }

  std::shared_ptr<ParameterStore> store() {
    return open_redis_store(parse_redis_uri(redis_.tcp_uri()).value(), "tiny").value();
  }
  // The version of the weights in the store: how many merges they hold.
  std::uint64_t stored_version() { return store()->read(weights_key()).value()->info().version; }

  RedisServer& redis() { return redis_; }
  std::filesystem::path file(const std::string& name) const { return folder_ / name; }
  std::list<Process>& workers() { return workers_; }

 private:
  std::filesystem::path log(const std::string& who) {
    return folder_ / (who + std::to_string(logs_++));
  }

  TempDir folder_;
  RedisServer redis_;
  std::list<Process> master_, workers_;
  int logs_ = 0;
};

}  // namespace speedo::test
