#include <algorithm>
#include <map>
#include <set>

#include "support/catch.hpp"

#include "models.hpp"
#include "trace.hpp"

namespace speedo {

namespace {

using Groups = std::vector<std::vector<std::string>>;

std::unique_ptr<Strategy> listed(Groups groups) {
  return strategy_of({.name = "grouping", .groups = std::move(groups)});
}

StrategyOptions measured(std::uint64_t count, std::uint64_t interval = 0) {
  return {.name = "grouping", .group_count = count, .regroup_interval = interval};
}

// Everybody of `workers` reports once, in this order; what the last report brought.
std::string all_report(Strategy& strategy, const std::map<std::uint64_t, std::uint64_t>& workers) {
  std::string last;
  for (const auto& [worker, duration_us] : workers) {
    last = to_text(strategy.on(trained(worker, duration_us)));
  }
  return last;
}

using Means = std::set<std::string>;

// Workers that each take their time, the earliest reporting first.
struct Cluster {
  std::map<std::uint64_t, std::uint64_t> duration_us;
  std::set<std::pair<std::uint64_t, std::uint64_t>> ends = {};  // of runs: when, whose
  std::uint64_t now = 0;

  void obey(const Commands& commands) {
    for (const Command& command : commands) {
      const auto* train = std::get_if<Train>(&command);
      if (train == nullptr) continue;
      ends.emplace(now + duration_us.at(train->worker.value), train->worker.value);
    }
  }
  // The means that are merged during so many reports.
  Means run(Strategy& strategy, int reports) {
    Means means;
    for (int i = 0; i < reports; ++i) {
      const auto [end, worker] = *ends.begin();
      ends.erase(ends.begin());
      now = end;
      const Commands commands = strategy.on(trained(worker, duration_us.at(worker)));
      for (const Command& command : commands) {
        if (std::holds_alternative<Average>(command)) means.insert(to_text(command).substr(8));
      }
      obey(commands);
    }
    return means;
  }
};

std::string error_of(const StrategyOptions& options) {
  const auto made = make_strategy(options);
  REQUIRE(!made);
  CHECK(made.error().code == ErrorCode::kUsage);
  return made.error().message;
}

}  // namespace

TEST_CASE("grouping by names: rounds inside a group, nobody waits for another group") {
  const auto grouping = listed({{"a", "b/1/0"}, {"b", "c"}});
  CHECK(to_text(grouping->on(joined({0, 1, 2, 3}, {"a/1/0", "b/1/0", "b/1/1", "c/1/0"}))) ==
        "train 0, train 1, train 2, train 3");
  CHECK(to_text(grouping->on(trained(3))).empty());
  CHECK(to_text(grouping->on(trained(0))).empty());
  CHECK(to_text(grouping->on(trained(1))) == "average 0 1, train 0, train 1");
  CHECK(to_text(grouping->on(trained(1))).empty());
  CHECK(to_text(grouping->on(trained(2))) == "average 2 3, train 2, train 3");
  CHECK(to_text(grouping->on(left(0))) == "average 1, train 1");
}

TEST_CASE("grouping by names: who stands in no list is a group of its own") {
  const auto grouping = listed({{"a"}});
  CHECK(to_text(grouping->on(joined({0, 1, 2}, {"a/1/0", "x/1/0", "x/2/0"}))) ==
        "train 0, train 1, train 2");
  CHECK(to_text(grouping->on(trained(1))) == "average 1, train 1");
  CHECK(to_text(grouping->on(trained(2))) == "average 2, train 2");
  CHECK(to_text(grouping->on(joined({3, 4}, {"a/2/0", "x/2/0"}))) == "train 4");
  CHECK(to_text(grouping->on(trained(0))) == "average 0, train 0, train 3");
}

TEST_CASE("grouping measured: alone at first, then with those of the same speed") {
  const auto grouping = strategy_of(measured(0));
  CHECK(to_text(grouping->on(joined({0, 1, 2, 3}))) == "train 0, train 1, train 2, train 3");
  const std::map<std::uint64_t, std::uint64_t> times = {{0, 100}, {1, 300}, {2, 110}, {3, 310}};
  CHECK(all_report(*grouping, times) == "average 3, train 3");
  CHECK(all_report(*grouping, times) == "average 3, train 3");
  // The third report of worker 3 makes the last speed known; it goes over to its group first.
  CHECK(all_report(*grouping, times) == "average 3, train 3");
  CHECK(to_text(grouping->on(trained(1, 300))) == "average 1");
  CHECK(to_text(grouping->on(trained(3, 310))) == "average 3, train 1, train 3");
  CHECK(to_text(grouping->on(trained(0, 100))) == "average 0, train 0");
  CHECK(to_text(grouping->on(trained(2, 110))) == "average 2");
  CHECK(to_text(grouping->on(trained(0, 100))) == "average 0, train 0, train 2");
  CHECK(to_text(grouping->on(trained(0, 100))).empty());
  CHECK(to_text(grouping->on(trained(2, 110))) == "average 0 2, train 0, train 2");
}

TEST_CASE("grouping measured: when one changes sides, unchanged groups are not disturbed") {
  const auto grouping = strategy_of(measured(0, 20));
  Cluster cluster{{{0, 100}, {1, 100}, {2, 300}, {3, 300}, {4, 900}}};
  cluster.obey(grouping->on(joined({0, 1, 2, 3, 4})));
  cluster.run(*grouping, 100);
  const Means before = {"0 1", "2 3", "4"};
  CHECK(cluster.run(*grouping, 100) == before);

  cluster.duration_us[3] = 900;
  const Means between = cluster.run(*grouping, 100);
  CHECK(between.contains("0 1"));
  CHECK(!between.contains("0"));
  CHECK(!between.contains("1"));
  const Means after = {"0 1", "2", "3 4"};
  CHECK(cluster.run(*grouping, 100) == after);
}

TEST_CASE("grouping measured: a newcomer runs alone until its speed is known") {
  const auto grouping = strategy_of(measured(1));
  grouping->on(joined({0, 1}));
  for (int i = 0; i < 4; ++i) all_report(*grouping, {{0, 100}, {1, 900}});
  CHECK(to_text(grouping->on(trained(0, 100))).empty());
  CHECK(to_text(grouping->on(joined({2}))) == "train 2");
  CHECK(to_text(grouping->on(trained(2, 500))) == "average 2, train 2");
  CHECK(to_text(grouping->on(trained(2, 500))) == "average 2, train 2");
  // Now all three are one new group: whoever ends a round goes there.
  CHECK(to_text(grouping->on(trained(2, 500))) == "average 2, train 2");
  CHECK(to_text(grouping->on(trained(1, 900))) == "average 0 1");
  CHECK(to_text(grouping->on(trained(2, 500))) == "average 2, train 0, train 1, train 2");
}

TEST_CASE("grouping measured: a worker that only fails holds nobody back") {
  const auto grouping = strategy_of(measured(1));
  grouping->on(joined({0, 1, 2}));
  for (int i = 0; i < 3; ++i) {
    CHECK(to_text(grouping->on(failed(1))) == "train 1");
    all_report(*grouping, {{0, 100}, {2, 100}});
  }
  CHECK(to_text(grouping->on(trained(0, 100))) == "average 0");
  CHECK(to_text(grouping->on(trained(2, 100))) == "average 2, train 0, train 2");
  CHECK(to_text(grouping->on(trained(0, 100))).empty());
  CHECK(to_text(grouping->on(failed(1))) == "train 1");
}

TEST_CASE("grouping: speeds outlive the master by name") {
  const std::vector<std::string> names = {"a/1/0", "b/1/0", "c/1/0 x"};
  const auto old = strategy_of(measured(0));
  old->on(joined({0, 1, 2}, names));
  for (int i = 0; i < 3; ++i) all_report(*old, {{0, 100}, {1, 100}, {2, 400}});
  const std::string state = old->save();
  CHECK(state == "0.01 a/1/0\n0.01 b/1/0\n0.0025 c/1/0 x\n");

  const auto next = strategy_of(measured(0));
  REQUIRE(next->restore(state));
  CHECK(next->save() == state);
  CHECK(to_text(next->on(joined({7, 8}, {names[1], names[2]}))) == "train 7, train 8");
  CHECK(to_text(next->on(joined({9}, {names[0]}))) == "train 9");
  CHECK(to_text(next->on(trained(7, 100))) == "average 7");
  CHECK(to_text(next->on(trained(9, 100))) == "average 9, train 7, train 9");
  CHECK(to_text(next->on(left(9))).empty());
  CHECK(next->save() == state);
}

TEST_CASE("grouping: names of workers that are gone do not pile up") {
  const auto grouping = strategy_of(measured(1));
  grouping->on(joined({0}, {"first/1/0"}));
  for (std::uint64_t worker = 1; worker <= 400; ++worker) {
    grouping->on(joined({worker}, {"flapping/" + std::to_string(worker) + "/0"}));
    for (int i = 0; i < 3; ++i) grouping->on(trained(worker, 100));
    grouping->on(left(worker));
  }
  const std::string state = grouping->save();
  CHECK(std::count(state.begin(), state.end(), '\n') == 256);
  CHECK(strategy_of(measured(1))->restore(state));
}

TEST_CASE("grouping: without durations nobody is known, and everybody stays alone") {
  const auto grouping = strategy_of(measured(1));
  grouping->on(joined({0, 1}));
  for (int i = 0; i < 5; ++i) {
    CHECK(to_text(grouping->on(trained(0))) == "average 0, train 0");
    CHECK(to_text(grouping->on(trained(1))) == "average 1, train 1");
  }
  CHECK(grouping->save().empty());
}

TEST_CASE("grouping refuses a damaged state") {
  for (const char* bad : {"1", "\n", "1\n", "1 \n", "x a\n", "0 a\n", "-1 a\n", "nan a\n",
                          "inf a\n", "1 a", "1 a\n1 a\n", " 1 a\n", "1\ta\n"}) {
    INFO(bad);
    const auto grouping = strategy_of(measured(0));
    const auto restored = grouping->restore(bad);
    REQUIRE(!restored);
    CHECK(restored.error().code == ErrorCode::kCorrupt);
    CHECK(grouping->save().empty());
  }
}

TEST_CASE("grouping refuses lists that contradict themselves or the measuring") {
  const Groups groups = {{"a", "b"}, {"c", "a"}};
  CHECK(error_of({.name = "grouping", .groups = groups}).find("'a' stands in group 1") !=
        std::string::npos);
  CHECK(error_of({.name = "grouping", .groups = {{"a"}, {}}}).find("group 2 is empty") !=
        std::string::npos);
  CHECK(error_of({.name = "grouping", .groups = {{""}}}).find("empty name") != std::string::npos);
  CHECK(error_of({.name = "grouping", .groups = {{"a"}}, .group_count = 2}).find("--groups N") !=
        std::string::npos);
  CHECK(error_of({.name = "grouping", .groups = {{"a"}}, .regroup_interval = 2})
            .find("--regroup-interval") != std::string::npos);
  CHECK(make_strategy({.name = "grouping", .groups = {{"a", "a"}, {"c"}}}));
}

TEST_CASE("grouping by names under random events does what its model says") {
  CHECK(holds([](const Randoms& randoms, std::uint32_t random) {
    const std::vector<Groups> choices = {{{"host0"}, {"host1"}},
                                         {{"host0", "host2"}},
                                         {{"host0", "host1", "host2"}},
                                         {{"host0/1/0", "host1/1/4"}, {"host0", "host1/1/1"}}};
    const StrategyOptions options{.name = "grouping", .groups = choices[random % choices.size()]};
    return compare(*strategy_of(options), grouping_model(options), randoms, true);
  }));
}

TEST_CASE("grouping measured under random events does what its model says") {
  CHECK(holds([](const Randoms& randoms, std::uint32_t random) {
    const std::uint64_t interval = random % 2 == 0 ? 0 : 5 + random / 8 % 20;
    const StrategyOptions options = measured(random / 2 % 4, interval);
    return compare(*strategy_of(options), grouping_model(options), randoms, true);
  }));
}

// From the outside: who is merged together was started together, and nobody else of those who were
// is still at work with them.
TEST_CASE("grouping: the contributors of a mean began at the same event") {
  CHECK(holds([](const Randoms& randoms, std::uint32_t random) -> std::string {
    const auto grouping = strategy_of(measured(random % 3, 10));
    World world;
    std::map<std::uint64_t, std::size_t> begun;
    for (std::size_t i = 0; i < randoms.size(); ++i) {
      const Commands commands = grouping->on(next_event(world, randoms[i]));
      for (const Command& command : commands) {
        const auto* average = std::get_if<Average>(&command);
        if (average == nullptr) continue;
        for (const WorkerId worker : average->workers) {
          if (begun.at(worker.value) != begun.at(average->workers.front().value)) {
            return "rounds mixed";
          }
        }
      }
      if (const std::string wrong = world.apply(commands); !wrong.empty()) return wrong;
      for (const Command& command : commands) {
        if (const auto* train = std::get_if<Train>(&command)) begun[train->worker.value] = i;
      }
    }
    return {};
  }));
}

}  // namespace speedo
