#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "store/sharded_key_value.hpp"
#include "train/merger_fixture.hpp"
#include "train/parts/joined_engine.hpp"
#include "train/parts/part_copy.hpp"

namespace speedo::test {

// A merger of a part that runs elsewhere, and may go at any moment: from then on nothing that it is
// told arrives.
class Elsewhere : public PartLink {
 public:
  explicit Elsewhere(PartSetup setup) : setup_(std::move(setup)) {}
  void answer_to(PartSink sink) override {
    sink_ = std::move(sink);
    merger_ = std::make_unique<PartMerger>(setup_, [this](PartAnswer answer) {
      const std::lock_guard lock(mutex_);
      if (gone_) return;
      answers_ += 1;
      if (answers_ == dies_before_) {
        gone_ = true;
        sink_(part_answer::Lost{"killed"});
        return;
      }
      sink_(with_copy_stored(*setup_.store, setup_.clip.part, std::move(answer)));
    });
  }
  void tell(const PartOrder& order) override {
    {
      const std::lock_guard lock(mutex_);
      if (gone_) return;
      orders_ += 1;
    }
    merger_->take(order);
  }
  void dismiss(const std::string& reason) override {
    const std::lock_guard lock(mutex_);
    dismissed_ = reason;
    gone_ = true;
  }
  // Instead of its answer of this number, counted from now.
  void die_before_answer(int number) {
    const std::lock_guard lock(mutex_);
    dies_before_ = answers_ + number;
  }
  // With all it knows; calls `before` it is known.
  void die(const std::function<void()>& before) {
    {
      const std::lock_guard lock(mutex_);
      gone_ = true;
    }
    merger_.reset();
    before();
    sink_(part_answer::Lost{"killed"});
  }
  // From its master, without an end of its own.
  void cut_off() {
    const std::lock_guard lock(mutex_);
    gone_ = true;
  }
  bool is_gone() {
    const std::lock_guard lock(mutex_);
    return gone_;
  }
  std::string dismissed() {
    const std::lock_guard lock(mutex_);
    return dismissed_;
  }
  int orders() {
    const std::lock_guard lock(mutex_);
    return orders_;
  }

 private:
  const PartSetup setup_;
  PartSink sink_;
  std::mutex mutex_;
  bool gone_ = false;
  int answers_ = 0, orders_ = 0, dies_before_ = -1;
  std::string dismissed_;
  std::unique_ptr<PartMerger> merger_;
};

struct Joined {
  // What stands before a server; none: nothing.
  using Wrap = std::function<std::shared_ptr<KeyValue>(std::shared_ptr<MemoryKeyValue>)>;

  Wrap wrap;
  std::vector<std::shared_ptr<MemoryKeyValue>> servers;
  std::shared_ptr<ParameterStore> store;
  std::shared_ptr<PartDesk> desk = std::make_shared<PartDesk>(real_platform());
  std::unique_ptr<MergerFixture> fixture;

  std::shared_ptr<KeyValue> map() const {
    std::vector<std::shared_ptr<KeyValue>> maps;
    for (const auto& server : servers) maps.push_back(wrap ? wrap(server) : server);
    if (maps.size() == 1) return maps.front();
    return std::make_shared<ShardedKeyValue>(std::move(maps), "m");
  }
  Joined(const MergerConfig& config, std::size_t count, std::size_t parts,
         const Checkpoint* from = nullptr, Wrap the_wrap = {})
      : wrap(std::move(the_wrap)) {
    for (std::size_t i = 0; i < parts; ++i) servers.push_back(std::make_shared<MemoryKeyValue>());
    store = std::make_shared<ChunkedStore>(map(), "m");
    store->fence(config.term);
    fixture = std::make_unique<MergerFixture>(config, count, store, from, desk);
  }
  // Of a merger elsewhere, which has a store of its own.
  PartSetup setup_of(std::size_t part, const MergerConfig& config) {
    PartSetup setup{.clip = {part, servers.size()},
                    .config = config,
                    .layout = fixture->layout,
                    .solver = fixture->solver,
                    .store = std::make_shared<ChunkedStore>(map(), "m"),
                    .make_backend = [] {
                      return Result<std::unique_ptr<Backend>>(test::make_backend(0));
                    }};
    setup.store->fence(config.term);
    return setup;
  }
  // A master after the one whose merger has ended; returns what it goes on from.
  Checkpoint go_on(const MergerConfig& config) {
    store = std::make_shared<ChunkedStore>(map(), "m");
    store->fence(config.term);
    desk = std::make_shared<PartDesk>(real_platform());
    auto found = read_checkpoint(*store, fixture->layout, true);
    require(found);
    fixture = std::make_unique<MergerFixture>(config, fixture->parameters, store, &*found, desk);
    return *found;
  }
  std::shared_ptr<Elsewhere> offer(std::size_t part, const MergerConfig& config) {
    auto merger = std::make_shared<Elsewhere>(setup_of(part, config));
    desk->offer({part, "elsewhere", merger});
    return merger;
  }
};

inline MergerConfig with_term(UpdateSpec update) {
  MergerConfig config = config_of(update);
  config.term = 7;
  config.publish_interval = 1;
  return config;
}

inline constexpr std::size_t kJoinedCount = 5 * kChunkElements + 1000;

// `term`: of a's master.
inline void same_contribution(MergerFixture& a, MergerFixture& b, std::uint64_t worker,
                       std::uint64_t run, std::uint64_t term = 7) {
  const auto values = a.padded(random_floats(a.parameters, 0.01F, 100 * worker + run));
  require(put(*a.store, contribution_key(term, worker), a.info(worker, run), values));
  require(put(*b.store, contribution_key(7, worker), b.info(worker, run), values));
}

// Two workers' contributions, merged by both, to the same weights.
inline void merge_alike(Joined& joined, MergerFixture& plain, std::uint64_t run) {
  for (std::uint64_t worker = 0; worker < 2; ++worker) {
    same_contribution(*joined.fixture, plain, worker, run);
  }
  const MergerFixture::Runs runs = {{0, run}, {1, run}};
  joined.fixture->merge_or_fail(runs, true, run);
  plain.merge_or_fail(runs, true, run);
  REQUIRE((joined.fixture->stored(run) == plain.stored(run)));
}

// Of one worker, of a master of term 7.
inline void put_delta(Joined& joined, std::uint64_t run) {
  MergerFixture& fixture = *joined.fixture;
  const auto delta = fixture.padded(random_floats(kJoinedCount, 0.01F, run));
  require(put(*joined.store, contribution_key(7, 0), fixture.info(0, run), delta));
}

inline MergeResult merge_delta(Joined& joined, std::uint64_t run) {
  put_delta(joined, run);
  return joined.fixture->merge_or_fail({{0, run}}, false);
}

// A merger elsewhere of this part, which has merged runs 1 and 2.
inline std::shared_ptr<Elsewhere> merge_twice_elsewhere(Joined& joined, std::size_t part,
                                                        const MergerConfig& config) {
  auto elsewhere = joined.offer(part, config);
  for (const std::uint64_t run : {1, 2}) merge_delta(joined, run);
  REQUIRE(elsewhere->orders() > 1);
  return elsewhere;
}

// Run 3 is merged into weights that are `expected` so far.
inline void merge_third(Joined& joined, std::vector<float> expected) {
  MergerFixture& fixture = *joined.fixture;
  REQUIRE(merge_delta(joined, 3).version == fixture.after(3));
  const auto delta = fixture.padded(random_floats(kJoinedCount, 0.01F, 3));
  for (std::size_t i = 0; i < expected.size(); ++i) expected[i] += delta[i];
  REQUIRE((fixture.stored(3) == expected));
}

// What the merger says between merges; none: nothing for a while.
inline std::optional<Error> what_it_waits_for(Joined& joined) {
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  std::optional<Error> error;
  while (!(error = joined.fixture->merger->waits_because()) &&
         std::chrono::steady_clock::now() < deadline) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return error;
}

// What a merger elsewhere has answered.
class Heard {
 public:
  void put(PartAnswer answer) {
    const std::lock_guard lock(mutex_);
    answers_.push_back(std::move(answer));
    changed_.notify_all();
  }
  PartAnswer next() {
    std::unique_lock lock(mutex_);
    const auto is_there = [this] { return !answers_.empty(); };
    REQUIRE(changed_.wait_for(lock, std::chrono::seconds(20), is_there));
    PartAnswer first = std::move(answers_.front());
    answers_.pop_front();
    return first;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<PartAnswer> answers_;
};

}  // namespace speedo::test
