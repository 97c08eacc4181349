#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/base/random.hpp>
#include <speedo/core/update_rule.hpp>

#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "support/catch.hpp"
#include "support/device_values.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"

namespace speedo {

// All of Caffe's solver types, each with what its formula is best seen with.
struct RuleKind {
  const char* type;
  const char* fields;
};
inline constexpr std::array kRuleKinds{
    RuleKind{"SGD", "momentum: 0.9"},
    RuleKind{"Nesterov", "momentum: 0.9"},
    RuleKind{"AdaGrad", "delta: 1e-4"},
    RuleKind{"RMSProp", "rms_decay: 0.9 delta: 1e-4"},
    RuleKind{"AdaDelta", "momentum: 0.9 delta: 1e-4"},
    RuleKind{"Adam", "momentum: 0.9 momentum2: 0.99 delta: 1e-4"},
};
inline std::string fields_of(const RuleKind& kind) {
  return std::string("type: \"") + kind.type + "\" " + kind.fields + ' ';
}

// Two parameters, one with padding behind it, the second with other multipliers.
inline ParameterLayout small_layout(float second_lr_mult = 2.0F) {
  ParameterLayout layout;
  layout.add({.layer = "ip", .index = 0, .name = "", .shape = {3, 5}});
  layout.add({.layer = "ip",
              .index = 1,
              .name = "",
              .shape = {20},
              .lr_mult = second_lr_mult,
              .decay_mult = 0.0F});
  return layout;
}

inline caffe::SolverParameter rule_solver(const std::string& text) {
  Result<caffe::SolverParameter> solver =
      parse_solver_prototxt("lr_policy: \"fixed\" base_lr: 0.1 " + text, "solver");
  REQUIRE(solver.has_value());
  return std::move(solver).value();
}

// A rule with arenas of weights and gradients.
struct RuleFixture {
  explicit RuleFixture(const std::string& text, ParameterLayout used_layout = small_layout(),
                       std::unique_ptr<Backend> used_backend = test::make_backend(1))
      : solver(rule_solver(text)),
        layout(std::move(used_layout)),
        backend(std::move(used_backend)) {
    Result<std::unique_ptr<UpdateRule>> made_rule = UpdateRule::create(solver, layout, *backend);
    REQUIRE(made_rule.has_value());
    rule = std::move(made_rule).value();
    for (Arena* arena : {&weights, &gradients}) {
      Result<Arena> created = Arena::create(*backend, layout.element_count());
      REQUIRE(created.has_value());
      *arena = std::move(created).value();
    }
  }

  // Random values in the parameters, zeros in the padding.
  void randomize(Arena& arena) {
    for (const ParameterSlot& slot : layout.slots()) {
      std::vector<float> values(static_cast<std::size_t>(slot.count()));
      for (float& value : values) value = random.uniform(-1.0F, 1.0F);
      backend->device().upload(arena.data() + slot.offset, values);
    }
  }
  void set(Arena& arena, std::int64_t place, float value) {
    test::set_value(backend->device(), arena.data() + place, value);
  }

  std::vector<double> copy(const Arena& arena) const {
    const auto values = test::values_at(backend->device(), arena.data(), arena.size());
    return {values.begin(), values.end()};
  }

  std::vector<std::vector<double>> histories() const {
    std::vector<std::vector<double>> copies;
    for (const Arena* history : rule->histories()) copies.push_back(copy(*history));
    return copies;
  }

  caffe::SolverParameter solver;
  ParameterLayout layout;
  std::unique_ptr<Backend> backend;
  std::unique_ptr<UpdateRule> rule;
  Arena weights, gradients;
  Random random{test::varied(17)};
};

}  // namespace speedo
