#pragma once

#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/free_port.hpp"
#include "support/process.hpp"
#include "support/redis_ask.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

namespace speedo::test {

// A primary, a replica and a Sentinel that watches them under the name kWatched, and makes the
// replica the primary when the other is silent for a second. Gone with the object.
class RedisSentinelGroup {
 public:
  static constexpr const char* kWatched = "shelf";
  struct Lines {
    std::string servers = {};   // of primary's and replica's redis.conf
    std::string sentinel = {};  // of sentinel.conf, after it was told what to watch
  };

  RedisSentinelGroup() : RedisSentinelGroup(Lines{}) {}
  explicit RedisSentinelGroup(const Lines& lines)
      : server_lines_("repl-diskless-sync-delay 0\n" + lines.servers),
        replica_({.extra = server_lines_ + replica_of(primary_)}) {
    start_sentinel(lines.sentinel);
    await_replica();
  }
  // Until the Sentinel says that a replica follows the primary.
  void await_replica() const { wait_for("SENTINEL REPLICAS shelf", "master-link-status\nok"); }

  std::string address() const {
    return "redis-sentinel://127.0.0.1:" + std::to_string(port_.port()) + "/" + kWatched;
  }
  int port() const { return port_.port(); }
  RedisServer& primary() { return primary_; }  // at first
  RedisServer& replica() { return replica_; }
  void end_sentinel() { sentinel_.reset(); }
  // Another one in its place, which knows nothing of failovers before.
  void renew_sentinel() {
    end_sentinel();
    start_sentinel({});
    await_replica();
  }
  // Where the Sentinel says that the primary is.
  int primary_port() const {
    const std::string answer = ask_redis(port_.port(), "SENTINEL GET-MASTER-ADDR-BY-NAME shelf");
    return std::stoi(answer.substr(answer.find('\n') + 1));
  }

 private:
  static std::string replica_of(const RedisServer& primary) {
    return "replicaof 127.0.0.1 " + std::to_string(primary.port()) + "\n";
  }
  void start_sentinel(const std::string& lines) {
    const std::string conf = (folder_ / "sentinel.conf").string();
    std::ofstream(conf) << "bind 127.0.0.1\nport " << port_.port() << "\ndir "
                        << folder_.path().string() << "\nsentinel monitor " << kWatched
                        << " 127.0.0.1 " << primary_.port()
                        << " 1\nsentinel down-after-milliseconds " << kWatched
                        << " 1000\nsentinel failover-timeout " << kWatched << " 4000\n"
                        << lines;
    const std::vector<std::string> command = {"/usr/bin/env", "redis-server", conf, "--sentinel"};
    sentinel_ = std::make_unique<Process>(command, folder_ / "sentinel");
  }
  void wait_for(const std::string& words, const std::string& answer) const {
    for (int i = 0; i < 3000; ++i) {
      if (ask_redis(port_.port(), words).find(answer) != std::string::npos) return;
      ::usleep(20000);
    }
    FAIL("the Sentinel does not say " << answer << ": " << ask_redis(port_.port(), words));
  }

  const std::string server_lines_;
  const TempDir folder_;
  const ReservedPort port_;
  RedisServer primary_{{.extra = server_lines_}};
  RedisServer replica_;
  std::unique_ptr<Process> sentinel_;
};

}  // namespace speedo::test
