// A job's weights in parts, of which servers lose what they hold: it comes back from whoever has
// it, or is said to be lost.

#include <algorithm>
#include <atomic>
#include <chrono>
#include <future>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "support/poll.hpp"
#include "train/joined_fixture.hpp"
#include "train/parts/clipped_store.hpp"
#include "train/parts/part_clip.hpp"

namespace speedo::test {
namespace {

// Loses so many copies of part 1 as soon as it has them.
class CopyLosingMap : public KeyValue {
 public:
  CopyLosingMap(std::shared_ptr<MemoryKeyValue> map, std::atomic<int>& copies)
      : map_(std::move(map)), copies_(copies) {}
  void submit(KvPtr operation) override {
    const bool is_copy = operation->kind == KvOperation::Kind::kSet &&
                         operation->key.ends_with("part/1/copy:m");
    const auto erase = std::make_shared<KvOperation>();
    erase->kind = KvOperation::Kind::kErase;
    erase->keys.push_back(operation->key);
    map_->submit(std::move(operation));
    if (is_copy && copies_.fetch_sub(1) > 0) map_->submit(erase);
  }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    return map_->list(prefix);
  }

 private:
  const std::shared_ptr<MemoryKeyValue> map_;
  std::atomic<int>& copies_;
};

// Answers nothing while it is the one that is away.
class AwayMap : public KeyValue {
 public:
  AwayMap(std::shared_ptr<MemoryKeyValue> map, std::atomic<MemoryKeyValue*>& away)
      : map_(std::move(map)), away_(away) {}
  void submit(KvPtr operation) override {
    if (away_ != map_.get()) return map_->submit(std::move(operation));
    operation->complete(Error{ErrorCode::kUnavailable, "a failure made by the test"});
  }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    return map_->list(prefix);
  }

 private:
  const std::shared_ptr<MemoryKeyValue> map_;
  std::atomic<MemoryKeyValue*>& away_;
};

// Counts what is read.
class CountingMap : public KeyValue {
 public:
  CountingMap(std::shared_ptr<MemoryKeyValue> map, std::atomic<int>& asked)
      : map_(std::move(map)), asked_(asked) {}
  void submit(KvPtr operation) override {
    if (operation->kind == KvOperation::Kind::kGetWhole) asked_ += 1;
    map_->submit(std::move(operation));
  }
  Result<std::vector<std::string>> list(std::string_view prefix) override {
    return map_->list(prefix);
  }

 private:
  const std::shared_ptr<MemoryKeyValue> map_;
  std::atomic<int>& asked_;
};

}  // namespace

TEST_CASE("a part that its server has lost comes back from its merger", "[merger]") {
  const std::size_t server = GENERATE(0, 1, 2);
  const MergerConfig config = with_term({});
  Joined joined(config, kJoinedCount, 3);
  MergerFixture& fixture = *joined.fixture;
  merge_delta(joined, 1);
  const auto before = fixture.stored(1);
  joined.servers[server]->set_image({});
  REQUIRE_FALSE(joined.servers[server]->image().size() > 0);
  std::vector<float> found(before.size());
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (!get(*joined.store, weights_key(), fixture.layout.digest(), found)) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
  }
  REQUIRE((found == before));
  REQUIRE(merge_delta(joined, 2).version == fixture.after(2));
}

TEST_CASE("a manifest that lacks a part does not take the place of a version that is whole",
          "[merger]") {
  const MergerConfig config = with_term({.kind = UpdateKind::kFullDelta});
  Joined joined(config, kJoinedCount, 2);
  MergerFixture& fixture = *joined.fixture;
  const auto elsewhere = joined.offer(1, config);
  merge_delta(joined, 1);
  merge_delta(joined, 2);
  REQUIRE(elsewhere->orders() > 0);
  const auto before = fixture.stored(2);
  std::vector<MemoryImage> images;
  for (const auto& server : joined.servers) images.push_back(server->image());
  merge_delta(joined, 3);
  // Both servers are back as they were, and who has the part of the newest version in memory is
  // gone.
  elsewhere->die([&] {
    for (std::size_t i = 0; i < images.size(); ++i) joined.servers[i]->set_image(images[i]);
  });
  put_delta(joined, 4);
  const auto merged = fixture.merge({{0, 4}}, false);
  REQUIRE_FALSE(merged);
  REQUIRE(merged.error().code == ErrorCode::kCorrupt);
  REQUIRE(merged.error().message.find("part 2 of 2") != std::string::npos);
  const std::string remedy = "the store has version " + std::to_string(fixture.after(2).value);
  REQUIRE(merged.error().message.find(remedy) != std::string::npos);
  fixture.merger.reset();
  std::vector<float> found(before.size());
  const auto info = read_all_parts(joined.store, fixture.layout, found);
  require(info);
  REQUIRE(info->version == fixture.after(2).value);
  REQUIRE((found == before));
}

TEST_CASE("mergers without a master spare the older version that a server came back with",
          "[merger]") {
  std::atomic<int> asked{0};
  const MergerConfig config = with_term({});
  Joined joined(config, kJoinedCount, 2, nullptr, [&](std::shared_ptr<MemoryKeyValue> map) {
    return std::make_shared<CountingMap>(std::move(map), asked);
  });
  MergerFixture& fixture = *joined.fixture;
  const std::vector mergers = {joined.offer(0, config), joined.offer(1, config)};
  merge_delta(joined, 1);
  merge_delta(joined, 2);
  const std::vector<float> before = fixture.stored(2);
  const MemoryImage first = joined.servers[0]->image();
  // The last of them to the slots that version 2 has.
  for (std::uint64_t run = 3; run < 3 + kRecordSlots; ++run) merge_delta(joined, run);
  for (const auto& merger : mergers) {
    REQUIRE(merger->orders() > 2);
    merger->cut_off();
  }
  fixture.merger.reset();
  joined.servers[0]->set_image(first);
  asked = 0;
  // Each looks more than once.
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (asked < 8) {
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  std::vector<float> found(before.size());
  const auto info = read_all_parts(joined.store, fixture.layout, found);
  require(info);
  CHECK(info->version == fixture.after(2).value);
  CHECK((found == before));
}

TEST_CASE("a part that is lost where it was written last comes from where it was written before",
          "[merger]") {
  const MergerConfig config = with_term({});
  Joined joined(config, kJoinedCount, 3);
  const auto first = merge_twice_elsewhere(joined, 1, config);
  const std::vector<float> expected = joined.fixture->stored(2);
  std::vector<MemoryImage> images;
  for (const auto& server : joined.servers) images.push_back(server->image());
  first->die([] {});
  const auto second = joined.offer(1, config);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (second->orders() < 2) {  // one of them says that what it has opened counts
    REQUIRE(std::chrono::steady_clock::now() < deadline);
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  second->die([&] {
    joined.servers[0]->set_image(images[0]);
    joined.servers[1]->set_image({});
    joined.servers[2]->set_image(images[2]);
  });
  merge_third(joined, expected);
}

TEST_CASE("a stage is entered though a server has just lost what it had", "[merger]") {
  const std::size_t server = GENERATE(0, 1, 2);
  const UpdateKind kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly);
  CAPTURE(server, static_cast<int>(kind));
  MergerConfig config = with_term({.kind = kind});
  config.stages.push_back(config.stages.front());
  Joined joined(config, kJoinedCount, 3);
  MergerFixture& fixture = *joined.fixture;
  merge_delta(joined, 1);
  const Merger::Copy before = fixture.copy();
  joined.servers[server]->set_image({});
  fixture.enter_or_fail(1);
  REQUIRE((fixture.copy().weights == before.weights));
  REQUIRE((fixture.copy().histories == before.histories));
  merge_delta(joined, 2);
}

TEST_CASE("contributions and weights that a server has lost: none is merged, the weights come back",
          "[merger]") {
  const std::size_t server = GENERATE(0, 1, 2);
  const UpdateKind kind = GENERATE(UpdateKind::kFullDelta, UpdateKind::kGradientOnly);
  CAPTURE(server, static_cast<int>(kind));
  const MergerConfig config = with_term({.kind = kind});
  Joined joined(config, kJoinedCount, 3);
  MergerFixture& fixture = *joined.fixture;
  const auto delta = fixture.padded(random_floats(kJoinedCount, 0.01F, 1));
  const auto contribute = [&](std::uint64_t run) {
    for (std::uint64_t worker = 0; worker < 2; ++worker) {
      require(put(*joined.store, contribution_key(7, worker), fixture.info(worker, run), delta));
    }
  };
  contribute(1);
  fixture.merge_or_fail({{0, 1}, {1, 1}}, false);
  const auto before = fixture.stored(1);
  contribute(2);
  joined.servers[server]->set_image({});
  const MergeResult result = fixture.merge_or_fail({{0, 2}, {1, 2}}, false);
  REQUIRE(result.version == fixture.after(1));
  REQUIRE(result.rejected.size() == 2);
  contribute(3);
  REQUIRE(fixture.merge_or_fail({{0, 3}, {1, 3}}, false).version == fixture.after(2));
  const auto after = fixture.stored(2);
  std::size_t changed = 0;
  for (std::size_t i = 0; i < kJoinedCount; ++i) changed += after[i] != before[i] ? 1 : 0;
  REQUIRE(changed > kJoinedCount / 100 * 99);
}

TEST_CASE("weights of a part that its server has lost come from the copy on the next one",
          "[merger]") {
  const std::size_t server = GENERATE(0, 1, 2);
  CAPTURE(server);
  const MergerConfig config = with_term({});
  Joined joined(config, kJoinedCount, 3);
  MergerFixture& fixture = *joined.fixture;
  merge_delta(joined, 1);
  const auto before = fixture.stored(1);
  fixture.merger.reset();
  std::vector<float> found(before.size());
  require(read_all_parts(joined.store, fixture.layout, found));
  REQUIRE((found == before));

  MemoryImage left = joined.servers[server]->image();
  std::erase_if(left, [&](const auto& each) {
    return each.first.find(":weights:") != std::string::npos && !each.first.ends_with(":m");
  });
  joined.servers[server]->set_image(left);
  const auto damaged = read_checkpoint(*joined.store, fixture.layout, false);
  REQUIRE_FALSE(damaged);
  REQUIRE(damaged.error().code == ErrorCode::kCorrupt);
  std::ranges::fill(found, 0.0F);
  const auto info = read_all_parts(joined.store, fixture.layout, found);
  require(info);
  REQUIRE(info->version == fixture.after(1).value);
  REQUIRE((found == before));

  joined.servers[(server + 1) % 3]->set_image({});
  REQUIRE_FALSE(read_all_parts(joined.store, fixture.layout, found));
}

TEST_CASE("a part's merger that only is thought to be gone harms no copy of its successor's",
          "[merger]") {
  const MergerConfig config = with_term({.kind = UpdateKind::kFullDelta});
  Joined joined(config, kJoinedCount, 3);
  MergerFixture& fixture = *joined.fixture;
  merge_delta(joined, 1);
  const Version last{(*joined.store->read(weights_key()))->info().version};
  const Version opened{last.value + 1};
  Heard heard;
  Elsewhere late(joined.setup_of(1, config));
  late.answer_to([&](PartAnswer answer) { heard.put(std::move(answer)); });
  late.tell(part_order::Open{
      .id = 1, .from = last, .version = opened, .stage = 0, .first_slot = 30});
  REQUIRE(std::holds_alternative<part_answer::Written>(heard.next()));
  late.tell(part_order::Decide{.id = 1, .commit = true});

  // Meanwhile the part is merged by another one, and what is late comes to other weights.
  merge_delta(joined, 2);
  merge_delta(joined, 3);
  const auto merged = fixture.stored(3);
  const MergeJob job = fixture.job({{0, 3}}, false);
  late.tell(part_order::Merge{.id = 2, .base = opened, .job = job});
  REQUIRE(std::holds_alternative<part_answer::Written>(heard.next()));

  fixture.merger.reset();
  joined.servers[1]->set_image({});
  std::vector<float> found(merged.size());
  require(read_all_parts(joined.store, fixture.layout, found));
  CHECK((found == merged));
}

TEST_CASE("weights that a master puts as a whole have copies, too, when it has begun",
          "[merger]") {
  const MergerConfig config = with_term({.kind = UpdateKind::kFullDelta});
  Joined joined(config, kJoinedCount, 3);
  merge_delta(joined, 1);
  const auto merged = joined.fixture->stored(1);
  joined.fixture->merger.reset();
  const PartSetup setup = joined.setup_of(0, config);
  setup.store->fence(config.term + 1);
  const RecordInfo info = (*joined.store->read(weights_key()))->info();
  require(put_copies_of_whole(setup.store, info, merged));
  require(put(*setup.store, weights_key(), info, merged));
  joined.servers[1]->set_image({});
  std::vector<float> found(merged.size());
  require(read_all_parts(setup.store, setup.layout, found));
  CHECK((found == merged));
}

TEST_CASE("weights of a part that nobody has any more are said to be lost, also between merges",
          "[merger]") {
  const MergerConfig config = with_term({});
  Joined joined(config, kJoinedCount, 3);
  MergerFixture& fixture = *joined.fixture;
  const auto elsewhere = merge_twice_elsewhere(joined, 1, config);
  REQUIRE_FALSE(fixture.merger->waits_because());

  elsewhere->die([&] {
    // Its own server, and the copy's.
    for (const std::size_t server : {1, 2}) joined.servers[server]->set_image({});
  });
  const std::optional<Error> lost = what_it_waits_for(joined);
  REQUIRE(lost.has_value());
  REQUIRE(lost->code == ErrorCode::kCorrupt);
  REQUIRE(lost->message.find("--resume=FILE") != std::string::npos);
  const auto merged = fixture.merge({{0, 3}}, false, 3);
  REQUIRE_FALSE(merged);
  REQUIRE(merged.error().code == ErrorCode::kCorrupt);
}

TEST_CASE("that a server is away is said between merges, until it is back", "[merger]") {
  const std::size_t server = GENERATE(0, 1);
  std::atomic<MemoryKeyValue*> away{nullptr};
  const MergerConfig config = with_term({});
  Joined joined(config, kJoinedCount, 2, nullptr, [&](std::shared_ptr<MemoryKeyValue> map) {
    return std::make_shared<AwayMap>(std::move(map), away);
  });
  MergerFixture& fixture = *joined.fixture;
  const auto elsewhere = merge_twice_elsewhere(joined, server, config);
  away = joined.servers[server].get();
  elsewhere->die([] {});
  const std::optional<Error> waits = what_it_waits_for(joined);
  away = nullptr;
  REQUIRE(waits.has_value());
  REQUIRE(waits->code == ErrorCode::kUnavailable);
  poll_until([&] { return !fixture.merger->waits_because(); });
  REQUIRE(merge_delta(joined, 3).version == fixture.after(3));
}

TEST_CASE("histories of a part that were lost where no merge uses them begin at zero", "[merger]") {
  const std::size_t lost = GENERATE(0, 1, 2);
  CAPTURE(lost);
  MergerConfig config = with_term({.kind = UpdateKind::kGradientOnly});
  config.stages.push_back({.kind = UpdateKind::kFullDelta});
  Joined joined(config, kJoinedCount, 3);
  const auto elsewhere = joined.offer(lost, config);
  merge_delta(joined, 1);
  joined.fixture->enter_or_fail(1);
  merge_delta(joined, 2);
  const Merger::Copy before = joined.fixture->copy();
  REQUIRE(before.histories.size() == 1);
  elsewhere->die([&] {
    for (const auto& server : joined.servers) {
      MemoryImage left = server->image();
      std::erase_if(left, [](const auto& each) {
        return each.first.find(checkpoint_key()) != std::string::npos;
      });
      server->set_image(left);
    }
  });
  const Merger::Copy after = joined.fixture->copy();
  CHECK((after.weights == before.weights));
  REQUIRE(after.histories.size() == 1);
  for (std::size_t part = 0; part < 3; ++part) {
    const std::vector<float> was = clip_values(before.histories[0], {part, 3});
    REQUIRE(std::ranges::any_of(was, [](float each) { return each != 0.0F; }));
    const std::vector<float> zeros(was.size());
    CHECK((clip_values(after.histories[0], {part, 3}) == (part == lost ? zeros : was)));
  }
}

TEST_CASE("a part's copy that the store has lost is asked for again, and not for ever",
          "[merger]") {
  const int forgotten = GENERATE(1, 4, 1000);
  CAPTURE(forgotten);
  const MergerConfig config = with_term({.kind = UpdateKind::kGradientOnly});
  std::atomic<int> copies{0};
  Joined joined(config, kJoinedCount, 3, nullptr, [&](auto map) {
    return std::make_shared<CopyLosingMap>(std::move(map), copies);
  });
  const auto elsewhere = merge_twice_elsewhere(joined, 1, config);
  copies = forgotten;
  std::promise<Result<Merger::Copy>> copied;
  joined.fixture->merger->copy([&](auto copy) { copied.set_value(std::move(copy)); });
  const Result<Merger::Copy> copy = copied.get_future().get();
  CHECK(copies < forgotten);
  if (forgotten > 4) {
    REQUIRE_FALSE(copy);
    CHECK(copy.error().code == ErrorCode::kNotFound);
  } else {
    require(copy);
    CHECK((copy->weights == joined.fixture->stored(2)));
  }
}

}  // namespace speedo::test
