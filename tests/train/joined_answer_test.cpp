// Weights in parts, of which a manifest arrives though its answer is lost, as that of a server that
// goes away once it has written it: whoever reads them meanwhile finds them whole.

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/read_once.hpp"
#include "train/joined_fixture.hpp"

namespace speedo::test {
namespace {

constexpr std::size_t kAnswerParts = 3;

// Loses the answer to one manifest of the weights, and looks at them after each write from then on.
class LostAnswer {
 public:
  // Of the next manifest; `meanwhile` happens before anybody hears of it.
  void lose_next(Joined& joined, std::function<void()> meanwhile) {
    std::vector<std::shared_ptr<KeyValue>> maps(joined.servers.begin(), joined.servers.end());
    reader_ = std::make_shared<ChunkedStore>(
        std::make_shared<ShardedKeyValue>(std::move(maps), "m"), "m");
    layout_ = joined.fixture->layout;
    meanwhile_ = std::move(meanwhile);
    armed_ = true;
  }
  bool is_lost() const { return lost_; }
  int looks() const { return looks_; }
  int unreadable() const { return unreadable_; }

  void execute(KeyValue& map, const KvPtr& operation) {
    const bool is_set = operation->kind == KvOperation::Kind::kSet;
    const bool is_manifest = is_set && operation->key == "speedo:{m}:weights:m";
    map.submit(operation);
    if (is_manifest && armed_.exchange(false)) {
      meanwhile_();
      lost_ = true;
      return operation->complete(Error{ErrorCode::kUnavailable, "a failure made by the test"});
    }
    if (is_set && lost_) look();
  }

 private:
  void look() {
    std::vector<float> values(static_cast<std::size_t>(layout_.element_count()));
    looks_ += 1;
    if (!get_once(*reader_, weights_key(), layout_.digest(), values)) unreadable_ += 1;
  }

  std::atomic<bool> armed_{false}, lost_{false};
  std::atomic<int> looks_{0}, unreadable_{0};
  std::function<void()> meanwhile_;
  std::shared_ptr<ParameterStore> reader_;
  ParameterLayout layout_;
};

class LosingMap : public KeyValue {
 public:
  LosingMap(std::shared_ptr<MemoryKeyValue> map, LostAnswer& answer)
      : map_(std::move(map)), answer_(answer) {}
  void submit(KvPtr operation) override { answer_.execute(*map_, operation); }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    return map_->list(prefix);
  }

 private:
  const std::shared_ptr<MemoryKeyValue> map_;
  LostAnswer& answer_;
};

Joined::Wrap losing(LostAnswer& answer) {
  return [&answer](std::shared_ptr<MemoryKeyValue> map) {
    return std::make_shared<LosingMap>(std::move(map), answer);
  };
}

// Does not answer the first erasure of a checkpoint.
class RefusingMap : public KeyValue {
 public:
  RefusingMap(std::shared_ptr<MemoryKeyValue> map, std::atomic<int>& refused)
      : map_(std::move(map)), refused_(refused) {}
  void submit(KvPtr operation) override {
    const bool is_erasure = operation->kind == KvOperation::Kind::kErase &&
                            !operation->keys.empty() &&
                            operation->keys.front().starts_with("speedo:{m}:checkpoint:");
    if (!is_erasure || refused_.fetch_add(1) > 0) return map_->submit(std::move(operation));
    operation->complete(Error{ErrorCode::kUnavailable, "a failure made by the test"});
  }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    return map_->list(prefix);
  }

 private:
  const std::shared_ptr<MemoryKeyValue> map_;
  std::atomic<int>& refused_;
};

// The chunks of a contribution that lie on a server.
void forget_chunks(MemoryKeyValue& server, std::uint64_t worker) {
  const auto erase = std::make_shared<KvOperation>();
  erase->kind = KvOperation::Kind::kErase;
  for (const auto& [key, value] : server.image()) {
    const bool is_its = key.find(':' + contribution_key(7, worker) + ':') != std::string::npos;
    if (is_its && key.find(":c") != std::string::npos) erase->keys.push_back(key);
  }
  server.submit(erase);
}

std::vector<std::vector<float>> put_both(Joined& joined, std::uint64_t run) {
  std::vector<std::vector<float>> deltas;
  for (std::uint64_t worker = 0; worker < 2; ++worker) {
    MergerFixture& fixture = *joined.fixture;
    deltas.push_back(fixture.padded(random_floats(kJoinedCount, 0.01F, 100 * worker + run)));
    require(put(*joined.store, contribution_key(7, worker), fixture.info(worker, run),
                deltas.back()));
  }
  return deltas;
}

}  // namespace

TEST_CASE("a first stage whose last step fails is entered once", "[merger]") {
  std::atomic<int> refused{0};
  Joined joined(with_term({}), kJoinedCount, kAnswerParts, nullptr,
                [&](std::shared_ptr<MemoryKeyValue> map) {
                  return std::make_shared<RefusingMap>(std::move(map), refused);
                });
  REQUIRE(refused > 1);
  const std::vector<float> expected = joined.fixture->stored(0);
  const auto deltas = put_both(joined, 1);
  const MergeResult result = joined.fixture->merge_or_fail({{0, 1}}, false);
  REQUIRE(result.version == joined.fixture->after(1));
  const std::vector<float> stored = joined.fixture->stored(1);
  for (std::size_t i = 0; i < expected.size(); ++i) {
    REQUIRE(stored[i] == expected[i] + deltas[0][i]);
  }
}

TEST_CASE("a manifest whose answer is lost, and a contribution that is lost by then", "[merger]") {
  LostAnswer answer;
  Joined joined(with_term({}), kJoinedCount, kAnswerParts, nullptr, losing(answer));
  MergerFixture& fixture = *joined.fixture;
  put_both(joined, 1);
  fixture.merge_or_fail({{0, 1}, {1, 1}}, false);
  std::vector<float> expected = fixture.stored(1);
  const auto deltas = put_both(joined, 2);
  answer.lose_next(joined, [&] { forget_chunks(*joined.servers[1], 1); });
  const MergeResult result = fixture.merge_or_fail({{0, 2}, {1, 2}}, false);
  REQUIRE(answer.is_lost());
  REQUIRE(result.version == fixture.after(2));
  REQUIRE(result.rejected == std::vector<WorkerId>{WorkerId{1}});
  REQUIRE(answer.looks() > 0);
  REQUIRE(answer.unreadable() == 0);
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += deltas[0][i];
  REQUIRE((fixture.stored(2) == expected));
}

TEST_CASE("a manifest whose answer is lost is not read once nothing of it counts", "[merger]") {
  LostAnswer answer;
  Joined joined(with_term({}), kJoinedCount, kAnswerParts, nullptr, losing(answer));
  MergerFixture& fixture = *joined.fixture;
  put_both(joined, 1);
  fixture.merge_or_fail({{0, 1}, {1, 1}}, false);
  const auto before = fixture.stored(1);
  put_both(joined, 2);
  answer.lose_next(joined, [&] {
    for (const std::uint64_t worker : {0, 1}) forget_chunks(*joined.servers[2], worker);
  });
  const MergeResult result = fixture.merge_or_fail({{0, 2}, {1, 2}}, false);
  REQUIRE(answer.is_lost());
  REQUIRE(result.version == fixture.after(1));
  REQUIRE(result.rejected.size() == 2);
  REQUIRE((fixture.stored(1) == before));
  put_both(joined, 3);
  fixture.merge_or_fail({{0, 3}, {1, 3}}, false);
  REQUIRE(answer.looks() > 0);
  REQUIRE(answer.unreadable() == 0);
}

// Of the same version there are the chunks that a part was opened from, and those that its new
// merger has written: any of them may be the only ones left, on the server or as a copy on the next
// one.
TEST_CASE("a part is opened, the answer to its manifest is lost, and so is what it was opened from",
          "[merger]") {
  const std::string left = GENERATE(as<std::string>(), "new chunks", "old chunks", "new copy");
  CAPTURE(left);
  LostAnswer answer;
  const MergerConfig config = with_term({});
  Joined joined(config, kJoinedCount, kAnswerParts, nullptr, losing(answer));
  const auto elsewhere = merge_twice_elsewhere(joined, 1, config);
  const std::vector<float> expected = joined.fixture->stored(2);
  elsewhere->die([&] {
    MemoryKeyValue& own = *joined.servers[1];
    MemoryKeyValue& next = *joined.servers[2];
    const MemoryImage before = own.image();
    if (left == "new chunks") own.set_image({});
    if (left == "new copy") next.set_image({});
    answer.lose_next(joined, [&own, &next, before, left] {
      if (left == "old chunks") own.set_image(before);
      (left == "new copy" ? own : next).set_image({});
    });
  });
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!answer.is_lost()) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  merge_third(joined, expected);
}

TEST_CASE("a version that was taken back is back on its server, and does not stay", "[merger]") {
  const bool is_told_to_merge = GENERATE(true, false);
  CAPTURE(is_told_to_merge);
  LostAnswer answer;
  Joined joined(with_term({}), kJoinedCount, kAnswerParts, nullptr, losing(answer));
  MergerFixture& fixture = *joined.fixture;
  put_both(joined, 1);
  fixture.merge_or_fail({{0, 1}, {1, 1}}, false);
  put_both(joined, 2);
  MemoryImage taken_back;
  answer.lose_next(joined, [&] {
    taken_back = joined.servers[0]->image();
    forget_chunks(*joined.servers[1], 1);
  });
  REQUIRE(fixture.merge_or_fail({{0, 2}, {1, 2}}, false).rejected.size() == 1);
  const auto counts = fixture.stored(2);
  joined.servers[0]->set_image(taken_back);
  if (is_told_to_merge) {
    // The server has lost these, too. Workers are told at once to read the weights.
    REQUIRE(fixture.merge_or_fail({{0, 3}, {1, 3}}, false).rejected.size() == 2);
    REQUIRE((fixture.stored(2) == counts));
    return;
  }
  std::vector<float> found(counts.size());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!get(*joined.store, weights_key(), fixture.layout.digest(), found) || found != counts) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
  }
}

}  // namespace speedo::test
