#include "sim/check/store_checker.hpp"

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include <speedo/store/record_store.hpp>

#include "speedo.pb.h"
#include "store/chunked_store.hpp"
#include "store/record_codec.hpp"
#include "support/catch.hpp"

#include "near_server.hpp"

namespace speedo::sim {
namespace {

constexpr std::uint64_t kItsTerm = 7;

// A server whose every operation the checker hears of, and a master that publishes there.
struct Published {
  EventQueue queue;
  StoreServer server{queue};
  Violations violations;
  RecordChecker records{server.map(), "job", queue, violations};
  StoreChecker checker{server.map(), records, "job", 1, violations};
  std::shared_ptr<KeyValue> map = std::make_shared<NearServer>(server);
  ChunkedStore store{map, "job"};
  std::shared_ptr<KvOperation> chunk, manifest;  // as they were set last

  Published() {
    store.fence(kItsTerm);
    server.on_done = [this](const KvOperation& operation) { checker.done(operation); };
    server.on_restart = [this](bool) { checker.restarted(); };
  }
  // A version's iteration is its number.
  void publish(std::uint64_t version) {
    record::Session session;
    session.set_iteration(version);
    RecordInfo info;
    info.version = version;
    info.element_count = 1;
    info.state = session.SerializeAsString();
    REQUIRE(put(store, weights_key(), info, std::vector<float>(1)));
  }
  std::shared_ptr<KvOperation> setting(const std::string& key) {
    const KvPtr read = get_whole(key);
    map->submit(read);
    REQUIRE(!read->error);
    auto set = std::make_shared<KvOperation>();
    set->kind = KvOperation::Kind::kSet;
    set->key = key;
    set->head = read->text;
    return set;
  }
  // The manifest of version 3 comes, but the server has lost its chunk.
  void publish_without_chunk() {
    server.remember();
    publish(3);
    const RecordKeys names("job", weights_key());
    chunk = setting(names.chunk(kItsTerm, 2, 0));
    manifest = setting(names.manifest());
    server.restart(Survives::kAllButLastSecond, Instant{0});
    map->submit(manifest);
    REQUIRE(!records.is_whole(names.manifest()));
  }
  // The newest manifest's answer is lost, of a master of this term.
  void lose_answer(std::uint64_t term) {
    const auto put = setting(RecordKeys("job", weights_key()).manifest());
    put->master.emplace();
    put->master->term = term;
    checker.unanswered(*put);
  }
  std::string found() const { return violations.first(); }
  bool went_back() const { return found().starts_with("published versions of term 7 go back"); }
};

TEST_CASE("published versions that go back are found") {
  Published master;
  master.publish(1);
  master.publish(2);
  CHECK(master.found() == "");
  master.publish(1);
  CHECK(master.went_back());
  CHECK(std::string(master.violations.check()) == "publication");
}

TEST_CASE("a master puts back the version before one that nobody has seen") {
  Published master;
  master.publish(1);
  master.publish(2);
  master.publish_without_chunk();
  SECTION("its manifest came after its chunks were lost") {
    master.publish(2);
    CHECK(master.found() == "");
  }
  SECTION("but not one before that") {
    master.publish(1);
    CHECK(master.went_back());
  }
  SECTION("but its chunk came again") {
    master.map->submit(master.chunk);
    master.publish(2);
    CHECK(master.went_back());
  }
  SECTION("but its master has said that it is there") {
    master.checker.published(kItsTerm, 3, true);
    master.publish(2);
    CHECK(master.went_back());
  }
  SECTION("and the next one is seen again") {
    master.publish(3);
    master.publish(2);
    CHECK(master.went_back());
  }
}

TEST_CASE("a master puts back the version before one whose answer was lost") {
  Published master;
  master.publish(1);
  master.publish(2);
  SECTION("its own") {
    master.lose_answer(kItsTerm);
    // An earlier master's manifest is refused.
    master.lose_answer(kItsTerm - 1);
    master.publish(1);
    CHECK(master.found() == "");
  }
  SECTION("but not for an earlier master's") {
    master.lose_answer(kItsTerm - 1);
    master.publish(1);
    CHECK(master.went_back());
  }
}

TEST_CASE("a version that was seen stays so when the server restarts") {
  Published master;
  master.publish(1);
  master.publish(2);
  master.server.restart(Survives::kAll, Instant{0});
  master.publish(1);
  CHECK(master.went_back());
}

TEST_CASE("a master says that it has published what the store does not have") {
  Published master;
  master.publish(1);
  master.checker.published(kItsTerm, 2, true);
  CHECK(master.found() == "");
  master.checker.published(kItsTerm, 1, false);
  CHECK(master.found() == "");
  master.checker.published(kItsTerm, 2, false);
  CHECK(master.found().starts_with("a master says that it has published version 2"));
}

}  // namespace
}  // namespace speedo::sim
