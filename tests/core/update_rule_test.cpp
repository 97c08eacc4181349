#include <cmath>
#include <string>
#include <vector>

#include "core/rule_fixture.hpp"

namespace speedo {
namespace {

// The definition, in double, written without looking at the rule: clip the sum, divide, decay, then
// the type's own formula.
class Definition {
 public:
  explicit Definition(const RuleFixture& f)
      : f_(f),
        first_(static_cast<std::size_t>(f.layout.element_count())),
        second_(first_.size()) {}

  void step(int iteration, std::vector<double>& w, const std::vector<double>& g) {
    double norm = 0.0;
    for (const double x : g) norm += x * x;
    norm = std::sqrt(norm);
    const double limit = f_.solver.clip_gradients();
    const double clip = limit >= 0 && norm > limit ? limit / norm : 1.0;
    for (const ParameterSlot& slot : f_.layout.slots()) {
      const double decay = static_cast<double>(f_.solver.weight_decay()) * slot.decay_mult;
      const double rate = static_cast<double>(f_.solver.base_lr()) * slot.lr_mult;
      for (std::int64_t k = 0; k < slot.count(); ++k) {
        const auto i = static_cast<std::size_t>(slot.offset + k);
        const double sign = w[i] > 0 ? 1.0 : (w[i] < 0 ? -1.0 : 0.0);
        const double pull = f_.solver.regularization_type() == "L1" ? sign : w[i];
        const double total = g[i] * clip / f_.solver.iter_size() + decay * pull;
        w[i] -= update(iteration, rate, total, first_[i], second_[i]);
      }
    }
  }

 private:
  double update(int iteration, double rate, double g, double& a, double& b) const {
    const std::string& type = f_.solver.type();
    const double m = f_.solver.momentum(), delta = f_.solver.delta();
    if (type == "SGD" || type == "Nesterov") {
      const double before = a;
      a = m * a + rate * g;
      return type == "SGD" ? a : (1.0 + m) * a - m * before;
    }
    if (type == "AdaGrad" || type == "RMSProp") {
      const double d = f_.solver.rms_decay();
      a = type == "AdaGrad" ? a + g * g : d * a + (1.0 - d) * g * g;
      return rate * g / (std::sqrt(a) + delta);
    }
    if (type == "AdaDelta") {
      a = m * a + (1.0 - m) * g * g;
      const double u = g * std::sqrt((b + delta) / (a + delta));
      b = m * b + (1.0 - m) * u * u;
      return rate * u;
    }
    const double m2 = f_.solver.momentum2();
    a = m * a + (1.0 - m) * g;
    b = m2 * b + (1.0 - m2) * g * g;
    const double unbiased = std::sqrt(1.0 - std::pow(m2, iteration + 1)) /
                            (1.0 - std::pow(m, iteration + 1));
    return rate * unbiased * a / (std::sqrt(b) + delta);
  }

  const RuleFixture& f_;
  std::vector<double> first_, second_;
};

void check_against_definition(RuleFixture& f) {
  f.randomize(f.weights);
  f.set(f.weights, 0, 0.0F);  // sign(0) = 0
  std::vector<double> w = f.copy(f.weights);
  Definition definition(f);
  for (int iteration = 0; iteration < 5; ++iteration) {
    f.randomize(f.gradients);
    definition.step(iteration, w, f.copy(f.gradients));
    f.rule->update(iteration, f.weights.data(), f.gradients.data());
    const std::vector<double> weights = f.copy(f.weights);
    for (std::size_t i = 0; i < w.size(); ++i) {
      INFO("iteration " << iteration << " element " << i);
      REQUIRE(weights[i] == Approx(w[i]).margin(2e-5));
    }
  }
}

TEST_CASE("every solver type agrees with its definition", "[update_rule]") {
  const char* options[] = {
      "",
      "weight_decay: 0.05",
      "weight_decay: 0.05 regularization_type: \"L1\"",
      "iter_size: 4",
      "clip_gradients: 0.5 iter_size: 2 weight_decay: 0.1",
      "clip_gradients: 1000",
  };
  for (const RuleKind& kind : kRuleKinds) {
    for (const char* text : options) {
      INFO(kind.type << ' ' << text);
      RuleFixture fixture(fields_of(kind) + text);
      check_against_definition(fixture);
    }
  }
  RuleFixture plain("");
  check_against_definition(plain);
}

TEST_CASE("a step by buckets, in any order, is the step of the whole", "[update_rule]") {
  for (const RuleKind& kind : kRuleKinds) {
    INFO(kind.type);
    const std::string text = fields_of(kind) + "weight_decay: 0.05";
    RuleFixture whole(text), parts(text);
    REQUIRE_FALSE(parts.rule->needs_whole_gradient());
    for (RuleFixture* fixture : {&whole, &parts}) fixture->randomize(fixture->weights);
    const std::int64_t count = whole.layout.element_count();
    for (int iteration = 0; iteration < 3; ++iteration) {
      for (RuleFixture* fixture : {&whole, &parts}) fixture->randomize(fixture->gradients);
      whole.rule->update(iteration, whole.weights.data(), whole.gradients.data());
      // Cuts within parameters and within the padding between them.
      std::int64_t end = count;
      for (const std::int64_t begin : {count - 5, count / 2, std::int64_t{3}, std::int64_t{0}}) {
        parts.rule->update(iteration, {begin, end - begin}, parts.weights.data(),
                           parts.gradients.data());
        end = begin;
      }
      REQUIRE(parts.copy(parts.weights) == whole.copy(whole.weights));
      REQUIRE(parts.histories() == whole.histories());
    }
  }
  CHECK(RuleFixture("clip_gradients: 1").rule->needs_whole_gradient());
}

TEST_CASE("a scaled rate scales what is new, not the history", "[update_rule]") {
  RuleFixture plain("momentum: 0.9"), scaled("momentum: 0.9");
  for (RuleFixture* fixture : {&plain, &scaled}) {
    fixture->randomize(fixture->gradients);
  }
  const std::vector<double> gradient = plain.copy(plain.gradients);
  REQUIRE(gradient == scaled.copy(scaled.gradients));
  scaled.rule->scale_rate(0.5F);
  for (RuleFixture* fixture : {&plain, &scaled}) {
    fixture->rule->compute_update(0, fixture->weights.data(), fixture->gradients.data());
  }
  const std::vector<double> once = plain.copy(plain.gradients);
  const std::vector<double> half = scaled.copy(scaled.gradients);
  for (std::size_t i = 0; i < once.size(); ++i) REQUIRE(half[i] == 0.5 * once[i]);
  // A rate of 0: only the momentum is left.
  scaled.rule->scale_rate(0.0F);
  scaled.rule->compute_update(1, scaled.weights.data(), scaled.gradients.data());
  const std::vector<double> coasting = scaled.copy(scaled.gradients);
  for (std::size_t i = 0; i < half.size(); ++i) {
    REQUIRE(coasting[i] == Approx(0.9 * half[i]).epsilon(1e-6));
  }
}

TEST_CASE("how many histories a rule has is known without one", "[update_rule]") {
  for (const RuleKind& kind : kRuleKinds) {
    RuleFixture fixture(fields_of(kind));
    const auto count = UpdateRule::history_count(fixture.solver);
    REQUIRE(count.has_value());
    REQUIRE(*count == fixture.rule->histories().size());
  }
  REQUIRE_FALSE(UpdateRule::history_count(rule_solver("type: \"Unheard\"")).has_value());
}

TEST_CASE("clipping looks at the sum, before it is divided by iter_size", "[update_rule]") {
  RuleFixture f("clip_gradients: 1 iter_size: 2");
  f.set(f.gradients, 0, 3.0F);
  f.set(f.gradients, 1, 4.0F);  // norm 5
  f.rule->compute_update(0, f.weights.data(), f.gradients.data());
  CHECK(f.copy(f.gradients)[0] == Approx(0.1 * 3.0 / 5.0 / 2.0));
  CHECK(f.copy(f.gradients)[1] == Approx(0.1 * 4.0 / 5.0 / 2.0));
}

TEST_CASE("a parameter with lr_mult 0 keeps its weights, decay or not", "[update_rule]") {
  ParameterLayout layout;
  layout.add({.layer = "ip", .index = 0, .name = "", .shape = {4}, .lr_mult = 0.0F});
  RuleFixture f("momentum: 0.9 weight_decay: 0.5", layout);
  f.randomize(f.weights);
  const std::vector<double> before = f.copy(f.weights);
  f.randomize(f.gradients);
  f.rule->update(0, f.weights.data(), f.gradients.data());
  CHECK(f.copy(f.weights) == before);
}

TEST_CASE("what lies in a statistic's place is the update already, and no gradient",
          "[update_rule]") {
  for (const RuleKind& kind : kRuleKinds) {
    INFO(kind.type);
    ParameterLayout layout = small_layout();
    layout.add({.layer = "bn", .index = 0, .name = "", .shape = {3}, .lr_mult = 0.0F,
                .is_statistic = true});
    layout.add({.layer = "last", .index = 0, .name = "", .shape = {2}});
    const std::string text =
        fields_of(kind) + "clip_gradients: 0.5 weight_decay: 0.1 iter_size: 2";
    RuleFixture with(text, layout), without(text, layout);
    for (RuleFixture* f : {&with, &without}) {
      f->randomize(f->weights);
      f->randomize(f->gradients);
    }
    const std::int64_t place = layout.slots()[2].offset;
    for (std::int64_t i = 0; i < 3; ++i) {
      with.set(with.gradients, place + i, 100.0F + static_cast<float>(i));
      without.set(without.gradients, place + i, 0.0F);
    }
    for (RuleFixture* f : {&with, &without}) {
      f->rule->compute_update(0, f->weights.data(), f->gradients.data());
    }
    std::vector<double> expected = without.copy(without.gradients);
    for (std::int64_t i = 0; i < 3; ++i) {
      expected[static_cast<std::size_t>(place + i)] = 100.0 + static_cast<double>(i);
    }
    REQUIRE(with.copy(with.gradients) == expected);
  }
}

TEST_CASE("a history goes through a solver state unchanged", "[update_rule]") {
  RuleFixture f("momentum: 0.9");
  f.randomize(f.gradients);
  f.rule->compute_update(0, f.weights.data(), f.gradients.data());
  caffe::SolverState state;
  f.rule->save(state, 7);
  REQUIRE(state.history_size() == 2);
  CHECK(state.history(0).shape().dim_size() == 2);
  CHECK(state.history(0).data_size() == 15);

  RuleFixture other("momentum: 0.9");
  const Result<std::int64_t> iteration = other.rule->load(state);
  REQUIRE(iteration.has_value());
  CHECK(*iteration == 7);
  CHECK(other.copy(*other.rule->histories()[0]) == f.copy(*f.rule->histories()[0]));
}

TEST_CASE("a state tells Caffe's current_step as of the last update", "[update_rule]") {
  RuleFixture f("");
  f.solver.set_lr_policy("step");
  f.solver.set_stepsize(5);
  f.rule = UpdateRule::create(f.solver, f.layout, *f.backend).value();
  caffe::SolverState state;
  for (const auto& [iteration, step] : {std::pair{0, 0}, {5, 0}, {6, 1}, {11, 2}}) {
    f.rule->save(state, iteration);
    CHECK(state.iter() == iteration);
    CHECK(state.current_step() == step);
  }
}

TEST_CASE("the state of another net is refused and changes nothing", "[update_rule]") {
  RuleFixture f("momentum: 0.9");
  f.randomize(f.gradients);
  f.rule->compute_update(0, f.weights.data(), f.gradients.data());
  const std::vector<double> before = f.copy(*f.rule->histories()[0]);
  caffe::SolverState good;
  f.rule->save(good, 3);
  const auto refuses = [&](const caffe::SolverState& state, const std::string& word) {
    const Result<std::int64_t> loaded = f.rule->load(state);
    REQUIRE(!loaded);
    CHECK(loaded.error().code == ErrorCode::kMismatch);
    CHECK(loaded.error().message.find(word) != std::string::npos);
    CHECK(f.copy(*f.rule->histories()[0]) == before);
  };
  caffe::SolverState state = good;
  state.mutable_history()->RemoveLast();
  refuses(state, "1 history blobs");
  state = good;
  state.mutable_history(1)->mutable_shape()->set_dim(0, 19);
  refuses(state, "layer 'ip'");
  state = good;
  state.mutable_history(1)->mutable_data()->RemoveLast();
  refuses(state, "19 values");
  state = good;
  state.set_iter(-1);
  refuses(state, "-1");
}

TEST_CASE("solver fields that no rule can use are refused by name", "[update_rule]") {
  const std::unique_ptr<Backend> backend = test::make_backend(1);
  const auto error = [&](const std::string& text) {
    auto rule = UpdateRule::create(rule_solver(text), small_layout(), *backend);
    REQUIRE(!rule);
    return rule.error();
  };
  CHECK(error("type: \"Sgd\"").code == ErrorCode::kConfig);
  CHECK(error("weight_decay: 0.1 regularization_type: \"L3\"").message.find("L3") !=
        std::string::npos);
  CHECK(UpdateRule::create(rule_solver("regularization_type: \"None\""), small_layout(), *backend));
  CHECK(error("iter_size: 0").message.find("iter_size") != std::string::npos);
  CHECK(error("momentum: nan").message.find("momentum") != std::string::npos);
}

}  // namespace
}  // namespace speedo
