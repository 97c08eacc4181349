#include "train/session/shard_leases.hpp"

#include "support/catch.hpp"
#include "support/random_property.hpp"

namespace speedo {

namespace {

std::vector<ShardLeases::Lease> start(ShardLeases& leases,
                                     const std::vector<ShardLeases::Order>& orders) {
  return leases.start_runs(orders);
}

}  // namespace

TEST_CASE("shards lie side by side, and what is reserved comes next") {
  ShardLeases leases(10);
  auto first = start(leases, {{{0}, 1}, {{1}, 3}});
  CHECK(first[0].current.first == 10);
  CHECK(first[1].current.first == 11);
  CHECK(first[1].current.count == 3);
  CHECK(first[0].next == 14);
  CHECK(first[1].next == 15);
  leases.report({0});
  auto second = start(leases, {{{0}, 5}});
  CHECK(second[0].current.first == 14);
  CHECK(second[0].current.count == 1);   // reserved when it was slower
  CHECK(second[0].next == 18);
  CHECK(leases.fresh() == 23);
}

TEST_CASE("returned shards are dealt first, in pieces that lie side by side") {
  ShardLeases leases(9, {2, 3, 5, 8});
  auto dealt = start(leases, {{{0}, 4}, {{1}, 1}, {{2}, 2}});
  CHECK(dealt[0].current.first == 2);
  CHECK(dealt[0].current.count == 2);
  CHECK(dealt[1].current.first == 5);
  CHECK(dealt[2].current.first == 8);
  CHECK(dealt[2].current.count == 1);
  CHECK(dealt[0].next == 9);
}

TEST_CASE("open are the free, the held, the reported; not the used") {
  ShardLeases leases(0);
  start(leases, {{{0}, 1}, {{1}, 1}});   // 0/2, 1/3
  const ShardRange reported = leases.report({0});
  CHECK(leases.open({}) == std::vector<std::uint64_t>{0, 1, 2, 3});
  CHECK(leases.open(std::vector{reported}) == std::vector<std::uint64_t>{1, 2, 3});
  leases.use_up(reported);
  leases.give_back({1});
  CHECK(leases.open({}) == std::vector<std::uint64_t>{1, 2, 3});
  CHECK(start(leases, {{{4}, 1}})[0].current.first == 1);
}

TEST_CASE("what a worker began is open until it is decided on, whoever has the shards then") {
  ShardLeases leases(0);
  CHECK_FALSE(leases.has_begun_open({0}));
  start(leases, {{{0}, 2}, {{1}, 1}});  // 0, 1/3 and 2/4
  CHECK(leases.has_begun_open({0}));
  const ShardRange shards = leases.report({0});
  CHECK(leases.has_begun_open({0}));
  leases.free_reported(shards);
  CHECK_FALSE(leases.has_begun_open({0}));
  leases.use_up(leases.report({1}));
  CHECK_FALSE(leases.has_begun_open({1}));
  start(leases, {{{1}, 1}});  // 4/0
  leases.use_up(leases.report({1}));
  start(leases, {{{1}, 1}});
  leases.report({1});
  CHECK(leases.has_begun_open({1}));
  CHECK_FALSE(leases.has_begun_open({0}));
  leases.give_back({1});
  CHECK(leases.has_begun_open({1}));
}

TEST_CASE("shards of another length begin with the data that no run was trained on") {
  ShardLeases leases(0, {}, {.shard = 0, .step = 100, .steps = 1});
  start(leases, {{{0}, 1}, {{1}, 1}});  // 0/2, 1/3
  leases.use_up(leases.report({0}));
  leases.use_up(leases.report({1}));
  leases.set_steps(1);
  CHECK(leases.open({}) == std::vector<std::uint64_t>{2, 3});
  leases.set_steps(3);
  CHECK(leases.open({}).empty());
  const auto longer = start(leases, {{{0}, 2}, {{1}, 1}});  // 4, 5/7, 8 and 6/9
  CHECK(leases.step_of(longer[0].current.first) == 102);
  CHECK(leases.step_of(longer[1].current.first) == 108);
  CHECK(leases.step_of(longer[0].next) == 111);
  leases.use_up(leases.report({0}));
  leases.use_up(leases.report({1}));
  leases.set_steps(2);
  CHECK(leases.step_of(leases.fresh()) == 111);
}

TEST_CASE("what lies apart is cut into shards of another length, and the rest waits for shorter") {
  ShardLeases leases(0, {}, {.shard = 0, .step = 100, .steps = 5});
  start(leases, {{{0}, 1}, {{1}, 1}});  // 0/2, 1/3
  leases.give_back({0});                // 100 .. 104 and 110 .. 114
  leases.use_up(leases.report({1}));
  start(leases, {{{1}, 1}});  // 3/0
  leases.use_up(leases.report({1}));
  const std::uint64_t fresh = leases.fresh();
  leases.set_steps(2);
  CHECK(leases.open({}) == std::vector<std::uint64_t>{fresh, fresh + 1, fresh + 2, fresh + 3});
  CHECK(leases.left() == std::vector<StepRange>{{104, 1}, {114, 1}});
  CHECK(leases.steps_left() == 2);
  const auto dealt = start(leases, {{{1}, 3}, {{2}, 1}});
  CHECK(leases.step_of(dealt[0].current.first) == 100);
  CHECK(dealt[0].current.count == 2);  // 102 is the last of its piece
  CHECK(leases.step_of(dealt[1].current.first) == 110);
  CHECK(leases.step_of(dealt[0].next) == 112);
  CHECK(leases.step_of(dealt[1].next) == 120);
  leases.use_up(leases.report({1}));
  leases.use_up(leases.report({2}));
  leases.set_steps(1);
  CHECK(leases.left().empty());
  const auto shorter = start(leases, {{{1}, 9}, {{2}, 9}, {{3}, 1}});
  CHECK(leases.step_of(shorter[0].current.first) == 104);
  CHECK(shorter[0].current.count == 1);
  CHECK(leases.step_of(shorter[1].current.first) == 112);
  CHECK(shorter[1].current.count == 3);  // 112, 113, and 114 that was left
  CHECK(leases.step_of(shorter[2].current.first) == 120);
}

TEST_CASE("of pieces that are too short for a shard the last are remembered") {
  ShardRemains remains;
  for (std::uint64_t i = 0; i <= ShardLeases::kLeftMax; ++i) remains.left.push_back({2 * i, 1});
  const std::uint64_t first = remains.left[1].first, last = remains.left.back().first;
  ShardLeases leases(0, {}, {.shard = 0, .step = last + 2, .steps = 2}, std::move(remains));
  leases.set_steps(3);
  CHECK(leases.left().size() == ShardLeases::kLeftMax);
  CHECK(leases.left().front().first == first);
}

// Workers train as fast as they like, and die; masters die, too. Between stages all wait.
TEST_CASE("whatever lengths follow each other, no step is lost, and none is trained twice") {
  const test::PropertySize size{.sequences = 5'000, .longest = 120};
  CHECK(test::holds_for_seeds({20261130}, size, [](const std::vector<std::uint16_t>& randoms) {
    ShardLeases leases(0);
    std::set<std::uint64_t> trained;
    std::uint64_t next_worker = 0;
    for (const std::uint16_t random : randoms) {
      const unsigned kind = random % 8, rest = random / 8;
      const WorkerId worker{next_worker + rest % 3};
      if (kind == 0) {
        leases.set_steps(1 + rest % 6);
      } else if (kind == 1) {
        leases.give_back(worker);
        if (rest % 2 == 0) next_worker += 1;
      } else if (kind == 2) {
        const auto open = leases.open({});
        ShardRemains remains{.apart = {}, .left = leases.left()};
        for (const std::uint64_t shard : open) {
          if (shard < leases.place().shard) remains.apart[shard] = leases.step_of(shard);
        }
        leases = ShardLeases(leases.fresh(), {open.begin(), open.end()}, leases.place(), remains);
      } else {
        const auto lease = leases.start_runs(std::vector{ShardLeases::Order{worker, 1 + rest % 3}});
        const std::uint64_t first = leases.step_of(lease[0].current.first);
        for (std::uint64_t i = 0; i < lease[0].current.count * leases.place().steps; ++i) {
          RC_ASSERT(trained.insert(first + i).second);
        }
        leases.use_up(leases.report(worker));
      }
      std::uint64_t open = leases.steps_left();
      open += leases.open({}).size() * leases.place().steps;
      RC_ASSERT(open + trained.size() == leases.step_of(leases.fresh()));
    }
  }));
}

// Rounds of shards whose length changes, also from one master to the next.
TEST_CASE("whatever lengths follow each other, every step is trained once and in order") {
  const test::PropertySize size{.sequences = 1'000, .longest = 50};
  CHECK(test::holds_for_seeds({20261130}, size, [](const std::vector<std::uint16_t>& randoms) {
    ShardLeases leases(0);
    std::uint64_t trained = 0;
    const std::uint64_t workers = 1 + randoms.size() % 4;
    for (const std::uint16_t random : randoms) {
      if (random % 3 == 0) leases.set_steps(1 + random / 3 % 5);
      std::vector<ShardLeases::Order> orders;
      for (std::uint64_t i = 0; i < workers; ++i) orders.push_back({{i}, 1});
      for (const auto& each : leases.start_runs(orders)) {
        RC_ASSERT(leases.step_of(each.current.first) == trained);
        trained += each.current.count * leases.place().steps;
      }
      for (const auto& order : orders) leases.use_up(leases.report(order.worker));
      if (random % 2 == 0) continue;
      const auto open = leases.open({});
      leases = ShardLeases(leases.fresh(), {open.begin(), open.end()}, leases.place());
    }
  }));
}

TEST_CASE("the end of a worker that holds nothing changes nothing") {
  ShardLeases leases(4);
  leases.give_back({7});
  CHECK(leases.open({}).empty());
  CHECK(leases.fresh() == 4);
}

// Workers join, train, report and die as the numbers say; masters die, too. Whatever happens, each
// share is used once, and none is left behind: the unused ones below `fresh` are the open ones.
TEST_CASE("each epoch of the data is disjoint and complete under any schedule") {
  const test::PropertySize size{.sequences = 10'000, .longest = 200};
  CHECK(test::holds_for_seeds({20261121}, size, [](const std::vector<std::uint16_t>& randoms) {
    ShardLeases leases(0);
    std::set<std::uint64_t> used;
    std::map<WorkerId, bool> running;
    std::vector<ShardRange> reported;
    std::uint64_t next_worker = 0;
    for (const std::uint16_t random : randoms) {
      const unsigned kind = random % 8, rest = random / 8;
      if (kind == 0 || running.empty()) {
        running[WorkerId{next_worker++}] = false;
      } else if (kind == 1 && rest % 4 == 0) {          // a new master, from the saved state
        const auto open = leases.open({});
        leases = ShardLeases(leases.fresh(), {open.begin(), open.end()});
        running.clear();
        reported.clear();
      } else if (kind <= 2) {
        const auto dead = std::next(running.begin(), rest % running.size());
        leases.give_back(dead->first);
        running.erase(dead);
      } else if (kind <= 4) {
        std::vector<ShardLeases::Order> orders;
        for (auto& [worker, busy] : running) {
          if (!busy) orders.push_back({worker, 1 + rest % 8});
          busy = true;
        }
        leases.start_runs(orders);
      } else if (kind == 5 && !reported.empty()) {
        const ShardRange range = reported[rest % reported.size()];
        std::erase_if(reported, [&](const ShardRange& each) { return each.first == range.first; });
        leases.use_up(range);
        for (std::uint64_t i = 0; i < range.count; ++i) {
          RC_ASSERT(used.insert(range.first + i).second);
        }
      } else {
        const auto worker = std::next(running.begin(), rest % running.size());
        if (worker->second) reported.push_back(leases.report(worker->first));
        worker->second = false;
      }
      const auto open = leases.open({});
      RC_ASSERT(open.size() + used.size() == leases.fresh());
      for (const std::uint64_t shard : open) RC_ASSERT(!used.contains(shard));
    }
  }));
}

}  // namespace speedo
