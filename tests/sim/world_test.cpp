#include <string>

#include "sim/event_queue.hpp"
#include "sim/process.hpp"
#include "sim/process_platform.hpp"
#include "sim/proof_network.hpp"
#include "sim/proof_store.hpp"
#include "store/chunked_store.hpp"
#include "support/catch.hpp"

namespace speedo::sim {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr Digest kModel{1, 2};

RecordInfo version(std::uint64_t number) {
  RecordInfo info;
  info.model = kModel;
  info.version = number;
  return info;
}

// A process on which real code could run.
struct Machine {
  explicit Machine(EventQueue& queue)
      : process(queue), platform(queue, process, {.name = "test"}) {}
  Process process;
  ProcessPlatform platform;
};

}  // namespace

TEST_CASE("actions happen in the order of their times, then of being queued") {
  EventQueue queue;
  std::string order;
  queue.at(seconds(2), [&] { order += 'c'; });
  queue.at(seconds(1), [&] {
    order += 'a';
    queue.after(Instant{0}, [&] { order += 'b'; });
    queue.at(seconds(0), [&] { order += 'B'; });  // has passed: now
  });
  queue.at(seconds(2), [&] { order += 'd'; });
  queue.run_until(milliseconds(1500));
  CHECK(order == "abB");
  CHECK(queue.now() == milliseconds(1500));
  while (queue.step()) {
  }
  CHECK(order == "abBcd");
  CHECK(queue.now() == seconds(2));
  CHECK(queue.steps() == 5);
}

TEST_CASE("what a stopped process was to do waits, in its order, and a dead one does nothing") {
  EventQueue queue;
  Process process(queue);
  std::string order;
  process.after(seconds(1), [&] { order += 'a'; });
  process.after(seconds(2), [&] { order += 'b'; });
  process.freeze();
  queue.run_until(seconds(3));
  process.here([&] { order += 'c'; });
  CHECK(order.empty());
  process.thaw();
  process.here([&] { order += 'd'; });
  CHECK(order.empty());
  queue.run_until(seconds(4));
  CHECK(order == "abcd");
  process.after(seconds(1), [&] { order += 'e'; });
  process.kill();
  process.here([&] { order += 'f'; });
  queue.run_until(seconds(9));
  CHECK(order == "abcd");
}

TEST_CASE("a process' clock leaps and stands still, and never goes back") {
  EventQueue queue;
  Process process(queue);
  queue.run_until(seconds(1));
  process.leap_clock(seconds(5));
  CHECK(process.now() == seconds(6));
  process.stop_clock();
  queue.run_until(seconds(4));
  CHECK(process.now() == seconds(6));
  process.go_on_clock();
  CHECK(process.now() == seconds(6));
  queue.run_until(seconds(5));
  CHECK(process.now() == seconds(7));
}

TEST_CASE("a network keeps the order of messages, and those on a cut path wait") {
  EventQueue queue;
  ProofNetwork network(1);
  network.attach(queue);
  network.latency = milliseconds(10);
  network.faults.late = 0.3;
  std::string order;
  const NodeId a{0}, b{1};
  for (char c = 'a'; c <= 'j'; ++c) network.carry(a, b, 1, [&order, c] { order += c; });
  queue.run_until(seconds(5));
  CHECK(order == "abcdefghij");
  network.cut(a, b, {});
  network.carry(a, b, 1, [&] { order += 'k'; });
  network.carry(b, a, 1, [&] { order += '<'; });
  queue.run_until(seconds(10));
  CHECK(order == "abcdefghij<");
  network.heal(a, b);
  queue.run_until(seconds(15));
  CHECK(order == "abcdefghij<k");
}

TEST_CASE("a restarted store has all, or what it had a second ago, or nothing") {
  EventQueue queue;
  StoreServer server(queue);
  Machine machine(queue);
  auto client = std::make_shared<StoreClient>(server, machine.platform, 1);
  ChunkedStore store(client, "job");
  REQUIRE(store.put_blob("old", "1"));
  server.remember();
  REQUIRE(store.put_blob("new", "2"));
  server.restart(Survives::kAll, seconds(1));
  CHECK(store.get_blob("new").error().code == ErrorCode::kUnavailable);
  queue.run_until(seconds(1));
  CHECK(store.get_blob("new").value() == "2");
  server.restart(Survives::kAllButLastSecond, Instant{0});
  CHECK(store.get_blob("new").error().code == ErrorCode::kNotFound);
  CHECK(store.get_blob("old").value() == "1");
  server.restart(Survives::kNothing, Instant{0});
  CHECK(store.get_blob("old").error().code == ErrorCode::kNotFound);
  CHECK(server.incarnation() == 4);
}

TEST_CASE("a fault is felt when it is met, and counts once") {
  EventQueue queue;
  StoreServer server(queue);
  Machine machine(queue);
  auto client = std::make_shared<StoreClient>(server, machine.platform, 1);
  ChunkedStore store(client, "job");
  FaultLedger ledger;
  const auto count = [&](FaultKind kind) { return ledger.table()[static_cast<std::size_t>(kind)]; };
  client->disconnect(ledger.drawn(FaultKind::kCutWorkerFromStore));
  CHECK(count(FaultKind::kCutWorkerFromStore) == FaultCount{1, 0, 0});
  for (int i = 0; i < 3; ++i) CHECK(!store.put_blob("blob", "1"));
  CHECK(count(FaultKind::kCutWorkerFromStore) == FaultCount{1, 1, 1});
  client->connect();
  CHECK(store.put_blob("blob", "1"));

  // A server that is down is felt by whoever asks it, and data that are lost by everybody.
  server.restart(Survives::kAll, seconds(1), ledger.drawn(FaultKind::kRestartStore));
  CHECK(count(FaultKind::kRestartStore) == FaultCount{1, 1, 0});
  CHECK(!store.get_blob("blob"));
  CHECK(count(FaultKind::kRestartStore) == FaultCount{1, 1, 1});
  queue.run_until(seconds(2));
  server.remember();
  server.restart(Survives::kAllButLastSecond, Instant{0},
                 ledger.drawn(FaultKind::kStoreLosesSecond));
  CHECK(count(FaultKind::kStoreLosesSecond) == FaultCount{1, 1, 0});
  CHECK(store.put_blob("blob", "2"));
  server.restart(Survives::kAllButLastSecond, Instant{0},
                 ledger.drawn(FaultKind::kStoreLosesSecond));
  CHECK(count(FaultKind::kStoreLosesSecond) == FaultCount{2, 2, 1});
}

TEST_CASE("only contributions of workers are damaged, and those are then not readable") {
  EventQueue queue;
  StoreServer server(queue);
  Machine machine(queue);
  ChunkedStore store(std::make_shared<StoreClient>(server, machine.platform, 1), "job");
  std::string damaged;
  server.damage_next_contribution([&](const std::string& key) { damaged = key; });
  const std::vector<float> values(16, 1.0F);
  std::vector<float> read(16);
  REQUIRE(put(store, weights_key(), version(1), values));
  REQUIRE(put(store, local_key(5, 3), version(1), values));
  REQUIRE(store.put_blob("job", "text"));
  CHECK(damaged.empty());
  REQUIRE(put(store, contribution_key(5, 3), version(1), values));
  CHECK(damaged.starts_with("speedo:{job}:worker/5/3:"));
  CHECK(get(store, contribution_key(5, 3), kModel, read).error().code == ErrorCode::kCorrupt);
  REQUIRE(put(store, contribution_key(5, 3), version(2), values));
  CHECK(get(store, contribution_key(5, 3), kModel, read));
}

TEST_CASE("a process dies at just the store operation that was named") {
  for (std::uint64_t dies_at = 0; dies_at < 6; ++dies_at) {
    EventQueue queue;
    StoreServer server(queue);
    Machine machine(queue), other(queue);
    auto client = std::make_shared<StoreClient>(server, machine.platform, dies_at);
    auto reader = std::make_shared<StoreClient>(server, other.platform, 1);
    ChunkedStore store(client, "job"), readers(reader, "job");
    const std::vector<float> values(16, 1.0F);
    REQUIRE(put(store, "record", version(1), values));
    client->strike_at_operation(dies_at, [&](const KvOperation&) { machine.process.kill(); });
    const auto second = put(store, "record", version(2), values);
    CHECK(machine.process.alive() == second.has_value());
    const auto seen = readers.read("record");
    REQUIRE(seen);
    // Whole, whichever it is.
    std::vector<float> read(16);
    CHECK(get(readers, "record", kModel, read));
    CHECK(read == values);
    if (second) CHECK((*seen)->info().version == 2);
  }
}

}  // namespace speedo::sim
