// AdaGrad, RMSProp, AdaDelta and Adam: values worked out by hand, what they have beside the rules
// of momentum, and what they refuse. Definitions are in update_rule_test.cpp.

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/rule_fixture.hpp"

namespace speedo {
namespace {

ParameterLayout one_weight() {
  ParameterLayout layout;
  layout.add({.layer = "ip", .index = 0, .name = "", .shape = {1}});
  return layout;
}

struct TwoSteps {
  const char* solver;
  double weights[2];                  // after gradients of 0.5 and -0.25, from 1, rate 0.1
  std::vector<double> histories;      // after both
};

TEST_CASE("two steps of each adaptive rule, worked out by hand", "[update_rule]") {
  const TwoSteps all[] = {
      {"type: \"AdaGrad\"", {0.9, 0.9447214}, {0.3125}},
      {"type: \"RMSProp\" rms_decay: 0.9", {0.6837722, 0.8312142}, {0.02875}},
      {"type: \"AdaDelta\" momentum: 0.9 delta: 0.01",
       {0.9732739, 0.9899021},
       {0.02875, 0.00919355}},
      {"type: \"Adam\" momentum: 0.9 momentum2: 0.99", {0.9, 0.8733300}, {0.02, 0.0031}},
  };
  for (const TwoSteps& one : all) {
    INFO(one.solver);
    RuleFixture f(one.solver, one_weight());
    f.set(f.weights, 0, 1.0F);
    for (const int step : {0, 1}) {
      f.set(f.gradients, 0, step == 0 ? 0.5F : -0.25F);
      f.rule->update(step, f.weights.data(), f.gradients.data());
      CHECK(f.copy(f.weights)[0] == Approx(one.weights[step]).epsilon(1e-6));
    }
    REQUIRE(f.histories().size() == one.histories.size());
    for (std::size_t i = 0; i < one.histories.size(); ++i) {
      CHECK(f.histories()[i][0] == Approx(one.histories[i]).epsilon(1e-5));
    }
  }
}

TEST_CASE("the change of the weights is what an update makes of them, bit for bit",
          "[update_rule]") {
  for (const RuleKind& kind : kRuleKinds) {
    INFO(kind.type);
    RuleFixture updated(fields_of(kind)), changed(fields_of(kind));
    for (RuleFixture* f : {&updated, &changed}) f->randomize(f->weights);
    for (int iteration = 0; iteration < 3; ++iteration) {
      for (RuleFixture* f : {&updated, &changed}) f->randomize(f->gradients);
      updated.rule->update(iteration, updated.weights.data(), updated.gradients.data());
      changed.rule->compute_delta(iteration, {0, changed.layout.element_count()},
                                  changed.weights.data(), changed.gradients.data());
      changed.backend->axpby(changed.weights.size(), 1.0F, changed.gradients.data(), 1.0F,
                             changed.weights.data());
      REQUIRE(changed.copy(changed.weights) == updated.copy(updated.weights));
      REQUIRE(changed.histories() == updated.histories());
    }
  }
}

TEST_CASE("a scaled rate scales an adaptive update and leaves its histories", "[update_rule]") {
  for (const RuleKind& kind : kRuleKinds) {
    RuleFixture plain(fields_of(kind)), scaled(fields_of(kind));
    if (plain.solver.type() == "SGD" || plain.solver.type() == "Nesterov") continue;
    INFO(kind.type);
    for (RuleFixture* f : {&plain, &scaled}) f->randomize(f->gradients);
    scaled.rule->scale_rate(0.5F);
    for (RuleFixture* f : {&plain, &scaled}) {
      f->rule->compute_update(0, f->weights.data(), f->gradients.data());
    }
    const std::vector<double> once = plain.copy(plain.gradients);
    const std::vector<double> half = scaled.copy(scaled.gradients);
    for (std::size_t i = 0; i < once.size(); ++i) {
      REQUIRE(half[i] == Approx(0.5 * once[i]).epsilon(1e-6));
    }
    REQUIRE(scaled.histories() == plain.histories());
  }
}

TEST_CASE("Adam's correction counts the updates that its histories hold", "[update_rule]") {
  const std::string text = "type: \"Adam\" momentum: 0.9 momentum2: 0.99";
  RuleFixture first(text), late(text), told(text);
  for (RuleFixture* f : {&first, &late, &told}) {
    f->randomize(f->weights);
    f->randomize(f->gradients);
  }
  first.rule->update(0, first.weights.data(), first.gradients.data());
  late.rule->update(1000, late.weights.data(), late.gradients.data());
  told.rule->set_updates_held(0);
  told.rule->update(1000, told.weights.data(), told.gradients.data());
  CHECK(told.copy(told.weights) == first.copy(first.weights));
  CHECK(late.copy(late.weights) != first.copy(first.weights));
}

TEST_CASE("both blocks of histories go through a solver state, the first block first",
          "[update_rule]") {
  for (const RuleKind& kind : kRuleKinds) {
    INFO(kind.type);
    RuleFixture f(fields_of(kind));
    for (int iteration = 0; iteration < 2; ++iteration) {
      f.randomize(f.gradients);
      f.rule->update(iteration, f.weights.data(), f.gradients.data());
    }
    caffe::SolverState state;
    f.rule->save(state, 2);
    const std::size_t blocks = f.histories().size(), slots = f.layout.slots().size();
    REQUIRE(static_cast<std::size_t>(state.history_size()) == blocks * slots);
    for (std::size_t i = 0; i < blocks * slots; ++i) {
      const ParameterSlot& slot = f.layout.slots()[i % slots];
      const caffe::BlobProto& blob = state.history(static_cast<int>(i));
      REQUIRE(blob.data_size() == slot.count());
      const double first = f.histories()[i / slots][static_cast<std::size_t>(slot.offset)];
      REQUIRE(static_cast<double>(blob.data(0)) == first);
    }
    RuleFixture other(fields_of(kind));
    REQUIRE(other.rule->load(state).value() == 2);
    REQUIRE(other.histories() == f.histories());
  }
}

// The state of a solver of one type after some updates, by gradients of which every other one is
// negative: squares are told from other histories by that.
caffe::SolverState state_of(const RuleKind& kind) {
  RuleFixture f(fields_of(kind));
  f.randomize(f.weights);
  for (int iteration = 0; iteration < 3; ++iteration) {
    for (const ParameterSlot& slot : f.layout.slots()) {
      for (std::int64_t i = 0; i < slot.count(); ++i) {
        f.set(f.gradients, slot.offset + i, i % 2 == 0 ? 0.5F : -0.5F);
      }
    }
    f.rule->update(iteration, f.weights.data(), f.gradients.data());
  }
  caffe::SolverState state;
  f.rule->save(state, 3);
  return state;
}

TEST_CASE("the state of another solver type is refused and changes nothing", "[update_rule]") {
  const auto state = [](const std::string& type) {
    for (const RuleKind& kind : kRuleKinds) {
      if (kind.type == type) return state_of(kind);
    }
    FAIL("no such type: " << type);
    return caffe::SolverState{};
  };
  const std::pair<const char*, const char*> refused[] = {
      {"AdaGrad", "SGD"},      {"AdaGrad", "Adam"},    {"RMSProp", "Nesterov"},
      {"RMSProp", "AdaDelta"}, {"AdaDelta", "Adam"},   {"AdaDelta", "SGD"},
      {"Adam", "RMSProp"},     {"Adam", "Nesterov"},   {"SGD", "Adam"},
  };
  for (const RuleKind& kind : kRuleKinds) {
    for (const auto& [type, other] : refused) {
      if (std::string(kind.type) != type) continue;
      INFO(type << " from the state of " << other);
      RuleFixture f(fields_of(kind));
      const auto before = f.histories();
      const Result<std::int64_t> loaded = f.rule->load(state(other));
      REQUIRE_FALSE(loaded.has_value());
      CHECK(loaded.error().code == ErrorCode::kMismatch);
      CHECK(loaded.error().message.find("solver type") != std::string::npos);
      CHECK(loaded.error().message.find(type) != std::string::npos);
      CHECK(f.histories() == before);
    }
  }
  CHECK(UpdateRule::have_same_histories("SGD", "Nesterov"));
  CHECK(UpdateRule::have_same_histories("Adam", "Adam"));
  CHECK_FALSE(UpdateRule::have_same_histories("Adam", "AdaDelta"));
  CHECK_FALSE(UpdateRule::have_same_histories("AdaGrad", "SGD"));
}

TEST_CASE("squares that rounding made a little negative are gone on from", "[update_rule]") {
  RuleFixture f("type: \"RMSProp\"");
  caffe::SolverState state = state_of(kRuleKinds[3]);
  REQUIRE(std::string(kRuleKinds[3].type) == "RMSProp");
  state.mutable_history(1)->set_data(3, -1e-6F);
  REQUIRE(f.rule->load(state).has_value());
  f.rule->update(3, f.weights.data(), f.gradients.data());
  for (const double value : f.copy(f.weights)) REQUIRE(value == value);
}

TEST_CASE("fields that an adaptive rule cannot use are refused by name", "[update_rule]") {
  struct Refused {
    const char* solver;
    const char* word;
  };
  const Refused all[] = {
      {"type: \"AdaGrad\" momentum: 0.9", "momentum"},
      {"type: \"RMSProp\" momentum: 0.1", "momentum"},
      {"type: \"RMSProp\" rms_decay: 1", "rms_decay"},
      {"type: \"RMSProp\" rms_decay: -0.1", "rms_decay"},
      {"type: \"RMSProp\" rms_decay: nan", "rms_decay"},
      {"type: \"AdaDelta\" momentum: 1", "momentum"},
      {"type: \"AdaDelta\" momentum: -0.5", "momentum"},
      {"type: \"Adam\" momentum: 1", "momentum"},
      {"type: \"Adam\" momentum2: 1", "momentum2"},
      {"type: \"Adam\" momentum2: -1", "momentum2"},
      {"type: \"Adam\" momentum2: nan", "momentum2"},
      {"type: \"Adam\" delta: -1e-8", "delta"},
      {"type: \"AdaGrad\" delta: inf", "delta"},
      {"type: \"AdaDelta\" delta: nan", "delta"},
  };
  const std::unique_ptr<Backend> backend = test::make_backend(1);
  for (const Refused& one : all) {
    INFO(one.solver);
    const caffe::SolverParameter solver = rule_solver(one.solver);
    const auto rule = UpdateRule::create(solver, small_layout(), *backend);
    REQUIRE_FALSE(rule.has_value());
    CHECK(rule.error().code == ErrorCode::kConfig);
    CHECK(rule.error().message.find(one.word) != std::string::npos);
    CHECK(rule.error().message.find(solver.type()) != std::string::npos);
    CHECK_FALSE(UpdateRule::history_count(solver).has_value());
  }
  // What the others do not look at does not matter.
  CHECK(UpdateRule::history_count(rule_solver("type: \"AdaGrad\" rms_decay: 7 momentum2: 3")));
  CHECK(UpdateRule::history_count(rule_solver("type: \"Adam\" momentum: 0 momentum2: 0 delta: 0")));
}

}  // namespace
}  // namespace speedo
