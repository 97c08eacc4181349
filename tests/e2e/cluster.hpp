#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "drawn_gate.hpp"
#include "support/long_runs.hpp"
#include "support/process.hpp"
#include "support/redis_server.hpp"
#include "support/temp_dir.hpp"

#include <speedo/base/random.hpp>
#include <speedo/store/parameter_store.hpp>
#include <speedo/store/redis_store.hpp>

namespace speedo::test {

// The programs under test: those of this build, or of the folder that SPEEDO_BIN_DIR names.
std::string program(const std::string& name);

// One job with real programs: a redis-server, masters, any number of workers.
//
// Its weights count: each run's gradient is the same number, whatever the weights, exactly
// representable, and so are the sums of millions of them. From the weights follows how many
// contributions they hold; one that was merged twice, or half, or lost, shows.
class Cluster {
 public:
  struct Options {
    bool append_only = false;  // Redis keeps its data when it dies
    std::string solver = {};   // more fields of the solver
    std::string password = {};     // of Redis
    std::string user = {};         // of that password, to look at the keys; empty: the default one
    std::string redis_lines = {};  // more lines of redis.conf
    bool shared_memory = false;    // where it is not, each merge is in the store at once
    int servers = 1;               // Redis servers that the job is spread over
    std::string redis = {};        // others than these, which the test has, as --redis takes them
    RedisTlsFiles tls = {};        // with that
    std::uint64_t rows = 64;       // of the weights, 64 a row: 4096 of them are a chunk
    std::string user_info = {};    // before the host in the master's --redis: "USER:PASSWORD@"
    bool own_proof = false;        // the test says what is shown at the gate; else it is drawn
  };
  explicit Cluster(std::uint64_t iterations) : Cluster(iterations, Options{}) {}
  Cluster(std::uint64_t iterations, const Options& options);

  // Starts a master; `extra`: more arguments; `environment`: NAME=VALUE.
  Process& start_master(const std::vector<std::string>& extra = {},
                        const std::vector<std::string>& environment = {});
  // The newest master's address; a test that waits in vain fails.
  std::string address();
  Process& start_worker(const std::string& master, const std::vector<std::string>& extra = {},
                        const std::vector<std::string>& environment = {});

  // The last line of the master's standard output.
  static nlohmann::json result(const Process& master);

  std::shared_ptr<ParameterStore> store();
  // Iterations whose contributions are in the stored weights; nothing if there are no weights.
  // Fails if a part of the weights has another number.
  std::optional<std::uint64_t> counted();
  // Waits until the store's weights have more than `iterations`.
  bool counts_beyond(std::uint64_t iterations,
                     std::chrono::milliseconds patience = std::chrono::seconds{120});
  // The iteration of the stored weights, as their session says; 0 if there are none.
  std::uint64_t stored_iteration();
  // Waits for a minute at most until that is more.
  bool gets_beyond(std::uint64_t iteration);
  // Keys in the store of contributions and local weights.
  std::size_t worker_keys();

  RedisServer& redis(std::size_t server = 0) { return *redis_[server]; }
  std::filesystem::path file(const std::string& name) const { return folder_ / name; }
  std::list<Process>& workers() { return workers_; }
  std::list<Process>& masters() { return masters_; }

 private:
  std::filesystem::path log(const std::string& who);

  TempDir folder_;
  std::string redis_addresses() const;
  std::vector<RedisAddress> nodes() const;  // that are not ours

  std::vector<std::unique_ptr<RedisServer>> redis_;
  RedisOptions seen_at(RedisOptions server) const;

  const std::string other_redis_, password_, user_, user_info_;
  const DrawnGate gate_;
  const RedisTlsFiles tls_;
  const bool shared_memory_;
  const std::uint64_t rows_;
  std::list<Process> masters_, workers_;
  int logs_ = 0;
};

// How training has to end, however many masters it took: every iteration counts once, and everybody
// goes in peace.
struct Ending {
  std::uint64_t iterations = 0;        // of the job
  std::uint64_t contributors_max = 1;  // of one iteration
  std::uint64_t from = 0;              // where this master began
};
void require_ending(Cluster& cluster, Process& master, const Ending& ending);

// Soon kills the first worker, starts another, and soon after that kills the master. Returns the
// iterations that the stored weights have then.
std::uint64_t kill_worker_and_master(Cluster& cluster, Process& master, const std::string& address,
                                     Random& random);

// The iteration that a master says it goes on from.
std::uint64_t resumed_from(const Process& master);
// The same of its log's text; 0 if it began anew.
std::uint64_t resumed_from_or_zero(const std::string& text);

// The rounds of a test that is repeated at random moments: all twenty if is_long(), else a few of
// them that follow each other, from one that is drawn.
std::vector<int> rounds(int few);
// Of the random moments (support/random_seed.hpp).
std::uint64_t seed();

void sleep_ms(std::uint64_t time);

using Arguments = std::vector<std::string>;
Arguments joined(Arguments a, const Arguments& b);

}  // namespace speedo::test
