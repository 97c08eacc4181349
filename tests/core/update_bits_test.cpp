// What replicas stand on: rules on a GPU give the bits that they give on the CPU, on any kernels.

#include <bit>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <speedo/cpu/cpu_backend.hpp>

#include "core/rule_fixture.hpp"

namespace speedo {
namespace {

// Sizes less than a vector, and of several with a rest.
ParameterLayout odd_layout() {
  ParameterLayout layout = small_layout();
  layout.add({.layer = "odd", .index = 0, .name = "", .shape = {1003}});
  layout.add({.layer = "odd", .index = 1, .name = "", .shape = {6}, .is_statistic = true});
  return layout;
}

// Of many sizes, with zeros of both signs among them.
std::vector<float> values_of_sizes(Random& random, std::int64_t count) {
  std::vector<float> values;
  for (std::int64_t i = 0; i < count; ++i) {
    const int exponent = static_cast<int>(random.uniform(-24.0F, 6.0F));
    const float value = std::ldexp(random.uniform(-1.0F, 1.0F), exponent);
    values.push_back(i % 29 == 7 ? std::copysign(0.0F, value) : value);
  }
  return values;
}

std::vector<std::uint32_t> bits_of(RuleFixture& f, const Arena& arena) {
  std::vector<std::uint32_t> bits;
  for (const float value : test::values_at(f.backend->device(), arena.data(), arena.size())) {
    bits.push_back(std::bit_cast<std::uint32_t>(value));
  }
  return bits;
}

void require_same_bits(RuleFixture& cpu, RuleFixture& gpu) {
  REQUIRE(bits_of(gpu, gpu.weights) == bits_of(cpu, cpu.weights));
  REQUIRE(bits_of(gpu, gpu.gradients) == bits_of(cpu, cpu.gradients));
  const std::vector<Arena*> on_cpu = cpu.rule->histories(), on_gpu = gpu.rule->histories();
  for (std::size_t i = 0; i < on_cpu.size(); ++i) {
    REQUIRE(bits_of(gpu, *on_gpu[i]) == bits_of(cpu, *on_cpu[i]));
  }
}

// As a replica does it, and as a solver.
void step(RuleFixture& f, int iteration, const std::vector<float>& gradients, bool is_replica) {
  f.backend->device().upload(f.gradients.data(), gradients);
  const std::int64_t count = f.layout.element_count();
  if (!is_replica) return f.rule->update(iteration, f.weights.data(), f.gradients.data());
  f.rule->compute_delta(iteration, {0, count}, f.weights.data(), f.gradients.data());
  f.backend->axpby(count, 1.0F, f.gradients.data(), 1.0F, f.weights.data());
}

TEST_CASE("every solver type gives the same bits on a GPU as on the CPU", "[update_rule]") {
  const char* options[] = {
      "",
      "weight_decay: 0.05",
      "weight_decay: 0.05 regularization_type: \"L1\"",
      "iter_size: 3",
      "clip_gradients: 0.5 iter_size: 3 weight_decay: 0.1",
  };
  const bool is_replica = GENERATE(true, false);
  const bool has_gpu = test::kernel_choice().gpu.has_value();
  for (const RuleKind& kind : kRuleKinds) {
    for (const char* text : options) {
      INFO(kind.type << ' ' << text);
      RuleFixture cpu(fields_of(kind) + text, odd_layout(), make_cpu_backend(1));
      RuleFixture gpu(fields_of(kind) + text, odd_layout(),
                      has_gpu ? test::make_backend(1) : test::make_gpu_double(0));
      const auto weights = values_of_sizes(cpu.random, cpu.layout.element_count());
      for (RuleFixture* f : {&cpu, &gpu}) {
        f->backend->device().upload(f->weights.data(), weights);
      }
      for (int iteration = 0; iteration < 4; ++iteration) {
        const auto gradients = values_of_sizes(cpu.random, cpu.layout.element_count());
        for (RuleFixture* f : {&cpu, &gpu}) step(*f, iteration, gradients, is_replica);
        INFO("iteration " << iteration);
        require_same_bits(cpu, gpu);
      }
    }
  }
}

}  // namespace
}  // namespace speedo
