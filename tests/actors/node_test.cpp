// Masters and workers as a whole: real sockets, nets, trainers and merger, in one process with a
// memory store.
#include "actors/node.hpp"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <future>
#include <mutex>
#include <string>
#include <vector>

#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "support/catch.hpp"
#include "support/free_port.hpp"

#include "node_cluster.hpp"
#include "stranger.hpp"

namespace speedo {
namespace {

using test::kSolver;
using test::StopSwitch;
using test::weights_of;
using test::without_zeros;
using Cluster = test::NodeCluster;

// What a master says to whoever connects, and that it then closes the connection: whether it gave
// the peer up. Sends `bytes` first.
bool gives_up_on(std::uint16_t port, const std::string& bytes) {
  const int descriptor = test::connect_to(port);
  REQUIRE(descriptor >= 0);
  const timeval patience{.tv_sec = 60, .tv_usec = 0};
  ::setsockopt(descriptor, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  CHECK(::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
        static_cast<ssize_t>(bytes.size()));
  char buffer[4096];
  ssize_t got = 0;
  do {
    got = ::recv(descriptor, buffer, sizeof(buffer), 0);
  } while (got > 0);
  const bool gave_up = got == 0 || errno == ECONNRESET;
  ::close(descriptor);
  return gave_up;
}

}  // namespace

TEST_CASE("async with one worker gives local training's weights through the whole stack") {
  Cluster cluster;
  auto master = cluster.start_master();
  auto worker = cluster.start_worker(cluster.master_address());
  const auto progress = master.get();
  REQUIRE(progress);
  CHECK(worker.get());
  CHECK(progress->iteration == 30);
  CHECK(progress->merges == 30);
  CHECK(progress->samples == 30 * 16);
  CHECK(cluster.snapshots == std::vector<std::int64_t>{30});
  CHECK(cluster.last_state.iter() == 30);
  CHECK(without_zeros(weights_of(cluster.last_model)) ==
        without_zeros(test::train_alone(cluster.options.spec.solver_text, 30)));
}

TEST_CASE("sync gradient only with 2 workers of 32 is one of 64, through the whole stack") {
  Cluster cluster;
  cluster.options.spec.solver_text = test::generated_solver(32, kSolver, false);
  cluster.schedule().update.kind = UpdateKind::kGradientOnly;
  cluster.schedule().strategy.name = "sync";
  cluster.options.session.workers_start = 2;
  cluster.options.session.max_iteration = 50;
  auto master = cluster.start_master();
  auto workers = cluster.start_worker(cluster.master_address(), 2);
  const auto progress = master.get();
  REQUIRE(progress);
  CHECK(workers.get());
  CHECK(progress->contributions == 100);
  const auto found = without_zeros(weights_of(cluster.last_model));
  const auto solver = test::generated_solver(64, kSolver, false);
  const auto alone = without_zeros(test::train_alone(solver, 50));
  REQUIRE(found.size() == alone.size());
  float largest = 0.0F, difference = 0.0F;
  for (std::size_t i = 0; i < found.size(); ++i) {
    largest = std::max(largest, std::abs(alone[i]));
    difference = std::max(difference, std::abs(found[i] - alone[i]));
  }
  CHECK(difference < 1e-4F * largest);
  CHECK(cluster.last_state.history_size() == 4);
}

TEST_CASE("contributions are gone after the job, the weights stay and can be resumed from") {
  Cluster cluster;
  auto master = cluster.start_master();
  auto workers = cluster.start_worker(cluster.master_address(), 2);
  REQUIRE(master.get());
  REQUIRE(workers.get());
  const auto weights = cluster.open()->read(weights_key());
  REQUIRE(weights);
  const RecordInfo info = (*weights)->info();
  CHECK_FALSE(info.state.empty());
  for (const std::uint64_t worker : {0, 1}) {
    CHECK_FALSE(cluster.open()->read(contribution_key(info.term, worker)));
  }

  Cluster again;
  again.memory = cluster.memory;
  again.options.resume = MasterOptions::Resume::kStore;
  again.options.session.max_iteration = 40;
  auto second = again.start_master();
  auto worker = again.start_worker(again.master_address());
  const auto progress = second.get();
  REQUIRE(progress);
  REQUIRE(worker.get());
  CHECK(progress->iteration == 40);
  CHECK(again.stored_version() > info.version + 9);
}

// Holds a worker's first contribution back, ready to become visible, until the test lets it go.
class LateMap : public KeyValue {
 public:
  LateMap(std::shared_ptr<KeyValue> map, std::shared_future<void> gone)
      : map_(std::move(map)), gone_(std::move(gone)) {}

  void submit(KvPtr operation) override {
    const bool is_contribution = operation->kind == KvOperation::Kind::kSet;
    if (is_contribution && operation->key.ends_with(":m")) {
      holds_ = true;
      gone_.wait();
    }
    map_->submit(std::move(operation));
  }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    return map_->list(prefix);
  }
  void stop_waiting() override {}
  bool holds() const { return holds_; }

 private:
  const std::shared_ptr<KeyValue> map_;
  const std::shared_future<void> gone_;
  std::atomic<bool> holds_{false};
};

TEST_CASE("a contribution that is put after the master has cleaned up does not stay") {
  Cluster cluster;
  std::promise<void> gone;
  const auto late = std::make_shared<LateMap>(cluster.memory, gone.get_future().share());
  const OpenStore open_late = [late](const StoreAddress&, const std::string& job) {
    return Result<std::shared_ptr<ParameterStore>>(std::make_shared<ChunkedStore>(late, job));
  };
  auto master = cluster.start_master();
  const std::string address = cluster.master_address();
  auto slow = cluster.start_worker(address, 1, nullptr, open_late);
  REQUIRE(cluster.wait_for([&] { return late->holds(); }));
  auto quick = cluster.start_worker(address);
  REQUIRE(master.get());
  REQUIRE(quick.get());
  gone.set_value();
  REQUIRE(slow.get());
  CHECK(test::handed_over_in(*cluster.memory) == std::vector<std::string>());
}

TEST_CASE("what workers of an earlier master put late is gone after the job") {
  Cluster cluster;
  auto master = cluster.start_master();
  const std::string address = cluster.master_address();
  REQUIRE(put(*cluster.open(), contribution_key(0, 7), RecordInfo{}, std::vector<float>(9)));
  auto worker = cluster.start_worker(address);
  REQUIRE(master.get());
  REQUIRE(worker.get());
  CHECK(test::handed_over_in(*cluster.memory) == std::vector<std::string>());
}

TEST_CASE("workers may be there before the master, and come late") {
  Cluster cluster;
  const test::ReservedPort reserved;
  cluster.options.port = reserved.port();
  cluster.options.session.max_iteration = 1000000;
  const std::string address = reserved.address();
  StopSwitch never;
  auto early = cluster.start_worker(address, 1, &never);
  REQUIRE(cluster.wait_for([&] { return never.polls() > 2; }));
  auto master = cluster.start_master();
  REQUIRE(cluster.wait_for([&] { return cluster.iteration > 3; }));
  StopSwitch leave;
  auto late = cluster.start_worker(address, 2, &leave);
  REQUIRE(cluster.wait_for([&] { return cluster.alive == 3; }));
  leave.set();
  CHECK(late.get());
  REQUIRE(cluster.wait_for([&] { return cluster.alive == 1; }));
  const std::uint64_t then = cluster.iteration;
  REQUIRE(cluster.wait_for([&] { return cluster.iteration > then + 3; }));
  cluster.master_stop.set();
  const auto progress = master.get();
  REQUIRE(progress);
  CHECK(early.get());
  CHECK(progress->workers_joined == 3);
  CHECK(progress->merges == progress->iteration);
  CHECK(cluster.snapshots == std::vector{static_cast<std::int64_t>(progress->iteration)});
}

TEST_CASE("a port in use is named, with the remedy, and the store is left alone") {
  Cluster cluster;
  auto master = cluster.start_master();
  const auto address = parse_address(cluster.master_address());
  REQUIRE(address);
  Cluster other;
  other.memory = cluster.memory;
  other.options.port = address->port;
  const auto refused = other.start_master().get();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().message.find(std::to_string(address->port)) != std::string::npos);
  CHECK(refused.error().message.find("--port") != std::string::npos);
  CHECK(cluster.open()->get_blob(job_key()));
  cluster.master_stop.set();
  CHECK(master.get());
}

TEST_CASE("an address is announced as workers take it, or refused before anybody is told") {
  Cluster taken;
  taken.options.host = "::1";
  auto master = taken.start_master();
  CHECK(taken.master_address().starts_with("speedo://[::1]:"));
  taken.master_stop.set();
  CHECK(master.get());
  for (const char* host : {"host:99", "cafe:99", "10.0.0.1:7000", "http://x", "a b", "0.0.0.0",
                           "::", "[::1]", "[10.0.0.1]", "[]", "user@host"}) {
    CAPTURE(host);
    Cluster cluster;
    cluster.options.host = host;
    cluster.options.session.max_iteration = 1000000;
    cluster.hooks.on_listening = [&cluster](const std::string& told) {
      CAPTURE(told);
      CHECK(told.empty());
      cluster.master_stop.set();
    };
    const auto refused = cluster.start_master().get();
    if (refused) FAIL_CHECK("it was taken");
    if (refused) continue;
    CHECK(refused.error().code == ErrorCode::kUsage);
    CHECK(refused.error().message.find(std::string("'") + host + "'") != std::string::npos);
  }
}

// Other protocols, by accident. Bytes that are made to harm CAF's parser are another matter: they
// can bring it down, see actors/README.md.
TEST_CASE("another protocol on the port costs its sender the connection, and training goes on") {
  Cluster cluster;
  cluster.options.session.max_iteration = 1000000;
  auto master = cluster.start_master();
  const std::string text = cluster.master_address();
  const std::uint16_t port = parse_address(text)->port;
  auto worker = cluster.start_worker(text);
  REQUIRE(cluster.wait_for([&] { return cluster.iteration > 3; }));
  // Each is at least as long as a header of CAF's, so that its parser sees it.
  constexpr std::size_t kHeaderBytes = 32;
  const std::string garbage[] = {
      "GET /index.html HTTP/1.1\r\nHost: localhost\r\n\r\n",
      "SSH-2.0-OpenSSH_9.2p1 Debian-2+deb12u3\r\n",
      "*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$5\r\nvalue\r\n",
      std::string("\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 11) + std::string(64, '\x5a'),
      std::string(64, '\xff'),
      std::string(64, '\0')};
  for (const std::string& bytes : garbage) {
    CAPTURE(bytes);
    REQUIRE(bytes.size() >= kHeaderBytes);
    CHECK(gives_up_on(port, bytes));
  }
  // Too little for a header: nothing for the parser; whoever sent it goes again.
  for (const std::string& bytes : {std::string(), std::string("GET / HTTP/1.1\r\n\r\n")}) {
    const int descriptor = test::connect_to(port);
    REQUIRE(descriptor >= 0);
    CHECK(::send(descriptor, bytes.data(), bytes.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(bytes.size()));
    ::close(descriptor);
  }
  const std::uint64_t then = cluster.iteration;
  REQUIRE(cluster.wait_for([&] { return cluster.iteration > then + 10; }));
  cluster.master_stop.set();
  CHECK(master.get());
  CHECK(worker.get());
}

TEST_CASE("a bad job is the master's error, before anybody is told an address") {
  Cluster cluster;
  cluster.options.spec.solver_text = "net_param { layer { name: \"a\" type: \"Nonsense\" } }";
  const auto refused = cluster.start_master().get();
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kConfig);

  Cluster unknown;
  unknown.schedule().strategy.name = "nonsense";
  const auto schedule = unknown.start_master().get();
  REQUIRE_FALSE(schedule);
  CHECK(schedule.error().code == ErrorCode::kUsage);
}

TEST_CASE("a worker that finds nobody gives up after its time-out, and stops when asked") {
  Cluster cluster;
  const test::ReservedPort silent;
  const std::string nobody = silent.address();
  const WorkerOptions options{.master = nobody,
                              .store_override = {},
                              .count = 2,
                              .name_prefix = "test",
                              .session = {.name = {},
                                          .device = "cpu",
                                          .master = {},
                                          .connect_timeout = std::chrono::seconds{1}}};
  const auto given_up = run_worker(options, {}, test::cpu_parts(), cluster.open_store());
  REQUIRE_FALSE(given_up);
  CHECK(given_up.error().code == ErrorCode::kUnavailable);
  CHECK(given_up.error().message.find(nobody) != std::string::npos);

  StopSwitch stop;
  auto worker = cluster.start_worker(nobody, 1, &stop);
  REQUIRE(cluster.wait_for([&] { return stop.polls() > 2; }));
  stop.set();
  CHECK(worker.get());
}

TEST_CASE("a master whose reports nobody takes trains on, with its workers") {
  Cluster cluster;
  std::promise<void> may;
  const std::shared_future<void> taken = may.get_future().share();
  cluster.hooks.on_progress = [&cluster, taken, take = cluster.hooks.on_progress](
                                  const MasterProgress& progress,
                                  const std::vector<TestScores>* scores) {
    taken.wait();
    take(progress, scores);
  };
  auto master = cluster.start_master();
  auto worker = cluster.start_worker(cluster.master_address());
  const bool ended = cluster.wait_for([&cluster] {
    const std::lock_guard lock(cluster.mutex);
    return !cluster.snapshots.empty();
  });
  CHECK(cluster.iteration == 0);
  may.set_value();
  CHECK(ended);
  const auto progress = master.get();
  REQUIRE(progress);
  REQUIRE(worker.get());
  CHECK(cluster.iteration == progress->iteration);
}

}  // namespace speedo
