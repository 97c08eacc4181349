#include "sim/check/shard_checker.hpp"

#include <array>
#include <initializer_list>

#include "support/catch.hpp"

namespace speedo::sim {
namespace {

using Deal = ShardChecker::Deal;

struct Dealt {
  Violations violations;
  ShardChecker checker{0, true, violations};

  void deal(std::initializer_list<Deal> deals) {
    checker.dealt(std::span(deals.begin(), deals.size()));
  }
  void check_state(std::uint64_t fresh, std::initializer_list<std::uint64_t> open,
                   std::initializer_list<ShardChecker::Range> merging = {}, bool discards = false) {
    record::Session state;
    state.set_data_fresh(fresh);
    for (const std::uint64_t shard : open) state.add_data_open(shard);
    checker.check_state(state, std::span(merging.begin(), merging.size()), discards);
  }
  std::string found() const { return violations.first(); }
};

TEST_CASE("shards given out, reported and used leave nothing to find") {
  Dealt data;
  data.deal(
      {{.worker = 1, .shards = {0, 1}, .next = 2}, {.worker = 2, .shards = {1, 1}, .next = 3}});
  data.checker.used(data.checker.reported(1));
  data.deal({{.worker = 1, .shards = {2, 1}, .next = 4}});
  data.checker.gone(2);  // 1 and 3 are nobody's, and dealt first
  data.check_state(5, {1, 2, 3, 4});
  const auto merging = data.checker.reported(1);
  data.check_state(5, {1, 3, 4}, {merging});
  data.deal({{.worker = 3, .shards = {1, 1}, .next = 3}});
  CHECK(data.found() == "");
}

TEST_CASE("a shard that two get, is left behind or out of order is found") {
  Dealt twice;
  twice.deal({{.worker = 1, .shards = {0, 1}, .next = 0}});
  CHECK(twice.found() == "shards that were never dealt, out of order");

  Violations violations;
  ShardChecker by_speed(0, false, violations);
  by_speed.dealt(std::array{Deal{.worker = 1, .shards = {0, 3}, .next = 3},
                            Deal{.worker = 2, .shards = {2, 1}, .next = 4}});
  CHECK(violations.first() == "a shard given to two workers");
  CHECK(std::string(violations.check()) == "once");

  Dealt behind;
  behind.deal({{.worker = 1, .shards = {0, 1}, .next = 1}});
  behind.checker.gone(1);
  behind.deal({{.worker = 2, .shards = {2, 1}, .next = 3}});
  CHECK(behind.found() == "a shard is left behind");

  Dealt reserved;
  reserved.deal({{.worker = 1, .shards = {0, 1}, .next = 1}});
  reserved.checker.used(reserved.checker.reported(1));
  reserved.deal({{.worker = 1, .shards = {2, 1}, .next = 3}});
  CHECK(reserved.found() == "not the shards that were reserved");
}

TEST_CASE("data that are open and nobody's after shards became others are found") {
  for (const std::uint64_t left : {1U, 2U}) {
    Dealt data;
    data.deal({{.worker = 1, .shards = {0, 1}, .next = 2, .step = 0, .next_step = 6, .steps = 3},
               {.worker = 2, .shards = {1, 1}, .next = 3, .step = 3, .next_step = 9, .steps = 3}});
    data.checker.used(data.checker.reported(1));
    data.checker.gone(2);  // steps 3 .. 5 and 9 .. 11
    data.deal({{.worker = 1, .shards = {2, 1}, .next = 1, .step = 6, .next_step = 3, .steps = 3}});
    data.checker.used(data.checker.reported(1));
    record::Session cut;
    cut.add_data_apart(3);
    cut.add_data_left(5);
    cut.add_data_left(left);
    cut.set_data_step(9);
    cut.set_data_steps(2);
    data.checker.given_up(4, &cut);
    CHECK(data.found() == "");
    cut.clear_data_left();
    if (left == 1) cut.clear_data_apart();
    data.checker.given_up(4, &cut);
    CHECK(data.found() == "data that were left are lost as shards become others");
  }
  Dealt data;
  data.deal({{.worker = 1, .shards = {0, 1}, .next = 1, .step = 0, .next_step = 3, .steps = 3}});
  data.checker.used(data.checker.reported(1));
  record::Session cut;
  cut.set_data_step(4);
  cut.set_data_steps(2);
  data.checker.given_up(2, &cut);
  CHECK(data.found() == "data that were open are lost as shards become others");
}

TEST_CASE("data that two shards have is found, of another length as well") {
  for (const std::uint64_t step : {1U, 0U}) {
    Dealt data;
    data.deal({{.worker = 1, .shards = {0, 1}, .next = 1, .step = 0, .next_step = 1, .steps = 1}});
    data.checker.used(data.checker.reported(1));
    CHECK(data.checker.given_up(2) == std::vector<std::uint64_t>{1});
    data.deal({{.worker = 1,
                .shards = {2, 1},
                .next = 3,
                .step = step,
                .next_step = step + 3,
                .steps = 3}});
    CHECK(data.found() == (step == 1 ? "" : "data that two shards have"));
  }
}

TEST_CASE("a shard used twice, or given out after its use, is found") {
  Dealt twice;
  twice.deal({{.worker = 1, .shards = {0, 1}, .next = 1}});
  const auto shards = twice.checker.reported(1);
  twice.checker.used(shards);
  twice.checker.used(shards);
  CHECK(twice.found() == "a shard is used twice");

  Violations violations;
  ShardChecker again(5, false, violations);
  again.dealt(std::array{Deal{.worker = 1, .shards = {4, 1}, .next = 6}});
  CHECK(violations.first() == "a shard that is used is given out again");

  Dealt none;
  none.checker.reported(1);
  CHECK(none.found() == "shards reported that were not given out");
}

TEST_CASE("a state that loses a shard, or opens one that is used, is found") {
  const auto saved = [](std::uint64_t fresh, std::initializer_list<std::uint64_t> open,
                        bool discards = false) {
    Dealt data;
    data.deal({{.worker = 1, .shards = {0, 1}, .next = 1}});
    data.checker.used(data.checker.reported(1));
    data.check_state(fresh, open, {}, discards);
    return data.found();
  };
  CHECK(saved(2, {1}) == "");
  CHECK(saved(2, {}) == "a shard is lost");
  CHECK(saved(2, {}, true) == "");
  CHECK(saved(2, {0, 1}) == "a shard is used and open");
  CHECK(saved(2, {1, 1}) == "a shard is open twice");
  CHECK(saved(2, {1, 2}) == "a shard is open that is not dealt");
  CHECK(saved(1, {1}) == "a shard is open that is not dealt");
}

TEST_CASE("what a state says is gone on from") {
  Violations violations;
  ShardChecker checker(0, true, violations);
  record::Session state;
  state.set_data_fresh(6);
  state.add_data_open(2);
  state.add_data_open(5);
  checker.go_on_from(state);
  checker.check_state(state, {}, false);
  checker.dealt(std::array{Deal{.worker = 9, .shards = {2, 1}, .next = 5}});
  checker.used(checker.reported(9));
  checker.dealt(std::array{Deal{.worker = 9, .shards = {5, 1}, .next = 6}});
  CHECK(violations.first() == "");
}

}  // namespace
}  // namespace speedo::sim
