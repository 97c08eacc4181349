#include "sim/check/start_checker.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/digest.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/store/record_store.hpp>

#include "store/chunked_store.hpp"
#include "support/catch.hpp"

#include "near_server.hpp"

namespace speedo::sim {
namespace {

constexpr TrainingId kOurs{1, 2}, kTheirs{3, 4};

record::Session session_at(TrainingId training, std::uint64_t term, std::uint64_t iteration) {
  record::Session session;
  session.set_training_high(training.high);
  session.set_training_low(training.low);
  session.set_term(term);
  session.set_iteration(iteration);
  return session;
}

std::string state_at(TrainingId training, std::uint64_t term, std::uint64_t iteration) {
  return session_at(training, term, iteration).SerializeAsString();
}

SavedCheckpoint checkpoint_at(TrainingId training, std::uint64_t term, std::uint64_t iteration) {
  SavedCheckpoint saved;
  saved.record.set_session(state_at(training, term, iteration));
  return saved;
}

struct Start {
  SimulatedDisk disk;
  EventQueue queue;
  StoreServer server{queue};
  Violations violations;
  RecordChecker records{server.map(), "job", queue, violations};
  StartChecker checker{
      {.disk = disk, .map = server.map(), .records = records, .job = "job", .prefix = "/s/net"},
      violations};

  // A checkpoint of three files.
  void write(TrainingId training, std::uint64_t term, std::uint64_t iteration) {
    const std::string name = "net_iter_" + std::to_string(iteration);
    record::CheckpointFile record;
    record.set_session(state_at(training, term, iteration));
    fill(*record.mutable_model(), name + ".caffemodel");
    fill(*record.mutable_state(), name + ".solverstate");
    const std::string bytes = std::string(16, 'h') + record.SerializeAsString();
    disk.put("/s/" + name + ".speedo", {bytes, true, {}});
  }
  void fill(record::CheckpointFile::Part& part, const std::string& name) {
    const std::string bytes = "content of " + name;
    part.set_name(name);
    part.set_bytes(bytes.size());
    part.set_checksum(checksum_of(std::as_bytes(std::span(bytes))));
    disk.put("/s/" + name, {bytes, true, {}});
  }
  void store_weights(TrainingId training, std::uint64_t term, std::uint64_t iteration) {
    RecordInfo info;
    info.version = iteration;
    info.element_count = 1;
    info.state = state_at(training, term, iteration);
    ChunkedStore store(std::make_shared<NearServer>(server), "job");
    REQUIRE(put(store, weights_key(), info, std::vector<float>(1)));
  }
  std::string found() const { return violations.first(); }
};

TEST_CASE("the newest files of the training are to be chosen") {
  Start start;
  start.write(kOurs, 1, 10);
  start.write(kOurs, 1, 20);
  start.write(kTheirs, 9, 30);
  CHECK(start.checker.chose(kOurs, checkpoint_at(kOurs, 1, 20)));
  CHECK(start.found() == "");
  start.checker.chose(kOurs, checkpoint_at(kOurs, 1, 10));
  CHECK(start.found().starts_with("of the files iteration 10 of term 1"));
  CHECK(std::string(start.violations.check()) == "start");
}

TEST_CASE("files of another training are not to be chosen") {
  Start start;
  start.write(kOurs, 1, 10);
  start.write(kTheirs, 9, 30);
  start.checker.chose(kOurs, checkpoint_at(kTheirs, 9, 30));
  CHECK(start.found().starts_with("files of another training are chosen"));
}

TEST_CASE("files that are not whole are none") {
  Start start;
  start.write(kOurs, 1, 10);
  start.write(kOurs, 1, 20);
  REQUIRE(start.disk.damage("/s/net_iter_20.solverstate", true, {}));
  CHECK(start.checker.chose(kOurs, checkpoint_at(kOurs, 1, 10)));
  CHECK(start.found() == "");
}

TEST_CASE("files that were written and are gone, undisturbed, are found") {
  const auto chosen_after = [](bool disturbed) {
    Start start;
    start.write(kOurs, 1, 10);
    start.checker.wrote(state_at(kOurs, 1, 20));
    if (disturbed) start.checker.files_disturbed();
    start.checker.chose(kOurs, checkpoint_at(kOurs, 1, 10));
    return start.found();
  };
  CHECK(chosen_after(false).starts_with("files were written of iteration 20"));
  CHECK(chosen_after(true) == "");
}

TEST_CASE("a master begins from the newest that there is, in the store or in files") {
  const auto begun_at = [](std::uint64_t iteration) {
    Start start;
    start.store_weights(kOurs, 1, 15);
    start.checker.begins(state_at(kOurs, 1, iteration),
                         StartChecker::Place{kOurs, 1, 10});
    return start.found();
  };
  CHECK(begun_at(15) == "");
  CHECK(begun_at(10).starts_with("a master begins from iteration 10 of term 1"));

  Start anew;
  anew.checker.begins("", {});
  CHECK(anew.found() == "");
  anew.checker.begins("", StartChecker::Place{kOurs, 1, 10});
  CHECK(anew.found().starts_with("a master begins from nothing, the newest is iteration 10"));
}

}  // namespace
}  // namespace speedo::sim
