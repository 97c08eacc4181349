#include "actors/status_client.hpp"

#include "actors/node_cluster.hpp"
#include "support/catch.hpp"
#include "support/free_port.hpp"

namespace speedo::test {
namespace {

StatusClient client_of(const Address& master) {
  return StatusClient::create(master, {}, [] { return std::optional<std::string>(); }).value();
}

TEST_CASE("Whoever asks a master is told of its workers, and disturbs nothing") {
  NodeCluster cluster;
  cluster.options.session.max_iteration = 1000000;
  cluster.options.session.workers_start = 2;
  auto master = cluster.start_master();
  const std::string address = cluster.master_address();
  StatusClient client = client_of(parse_address(address).value());
  auto status = client.ask();
  REQUIRE(status);
  CHECK(status->workers.empty());
  CHECK_FALSE(status->progress.training);
  for (int i = 0; i < 3; ++i) CHECK(client.ask());  // at once, each time

  StopSwitch stop;
  auto workers = cluster.start_worker(address, 2, &stop);
  REQUIRE(cluster.wait_for([&] { return cluster.iteration > 5; }));
  status = client.ask();
  REQUIRE(status);
  REQUIRE(status->workers.size() == 2);
  CHECK(status->job == "job");
  CHECK(status->progress.iteration > 5);
  CHECK(status->progress.workers_alive == 2);
  for (const WorkerStatus& row : status->workers) {
    CHECK(row.name.starts_with("test/"));
    CHECK(row.device == "cpu");
    CHECK(row.runs > 0);
    CHECK(row.traffic.pushed_bytes > 0);
    CHECK(row.traffic.pulled_bytes > 0);
    CHECK(row.phases.forward_us > 0);
  }
  stop.set();
  REQUIRE(cluster.wait_for([&] { return cluster.alive == 0; }));
  status = client.ask();
  REQUIRE(status);
  for (const WorkerStatus& row : status->workers) CHECK(row.state == WorkerState::kGone);
  cluster.master_stop.set();
  CHECK(master.get());
  CHECK(workers.get());
  // Its last word comes unasked, if it does; behind that is nobody.
  auto gone = client.ask();
  if (gone) {
    CHECK(gone->over);
    gone = client.ask();
  }
  REQUIRE_FALSE(gone);
  CHECK(gone.error().code == ErrorCode::kUnavailable);
}

TEST_CASE("Where no master is, the error says what is there") {
  const ReservedPort nobody;
  StatusClient client = client_of({"127.0.0.1", nobody.port()});
  const auto status = client.ask();
  REQUIRE_FALSE(status);
  CHECK(status.error().code == ErrorCode::kUnavailable);
  CHECK(status.error().message.find(nobody.address()) != std::string::npos);
}

TEST_CASE("A request to stop ends the waiting for an answer") {
  ReservedPort silent;
  silent.listen();
  StatusClient client = StatusClient::create({"127.0.0.1", silent.port()}, {}, [] {
                          return std::optional<std::string>("ask");
                        }).value();
  const auto status = client.ask();
  REQUIRE_FALSE(status);
  CHECK(status.error().message.find("ask") != std::string::npos);
}

}  // namespace
}  // namespace speedo::test
