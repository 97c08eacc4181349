#include <cmath>
#include <string>

#include <speedo/core/update_rule.hpp>

#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

caffe::SolverParameter solver_of(const std::string& text) {
  Result<caffe::SolverParameter> solver = parse_solver_prototxt(text, "solver");
  REQUIRE(solver.has_value());
  return std::move(solver).value();
}

float rate_of(const std::string& text, std::int64_t iteration) {
  const Result<float> rate = learning_rate(solver_of(text), iteration);
  REQUIRE(rate.has_value());
  return *rate;
}

TEST_CASE("each learning-rate policy follows its closed form", "[learning_rate]") {
  const std::string base = "base_lr: 0.2 gamma: 0.5 power: 1.5 stepsize: 4 max_iter: 40 ";
  for (const std::int64_t i : {0, 1, 3, 4, 7, 8, 39, 40}) {
    const auto x = static_cast<double>(i);
    const auto is = [&](const char* policy, double expected) {
      INFO(policy << " at " << i);
      CHECK(rate_of(base + "lr_policy: \"" + policy + "\"", i) ==
            Approx(expected).epsilon(1e-6).margin(1e-12));
    };
    is("fixed", 0.2);
    is("step", 0.2 * std::pow(0.5, std::floor(x / 4)));
    is("exp", 0.2 * std::pow(0.5, x));
    is("inv", 0.2 * std::pow(1 + 0.5 * x, -1.5));
    is("poly", 0.2 * std::pow(1 - x / 40, 1.5));
    is("sigmoid", 0.2 / (1 + std::exp(-0.5 * (x - 4))));
  }
}

TEST_CASE("the poly rate stays 0 after max_iter", "[learning_rate]") {
  CHECK(rate_of("base_lr: 1 lr_policy: \"poly\" power: 0.5 max_iter: 10", 11) == 0.0F);
}

TEST_CASE("multistep takes at most one step per iteration", "[learning_rate]") {
  const auto solver = solver_of(
      "base_lr: 1 lr_policy: \"multistep\" gamma: 0.1 stepvalue: 3 stepvalue: 3 stepvalue: 2 "
      "stepvalue: 9");
  const std::int32_t expected[] = {0, 0, 0, 1, 2, 3, 3, 3, 3, 4, 4};
  for (int i = 0; i < 11; ++i) {
    INFO("iteration " << i);
    CHECK(current_step(solver, i) == expected[i]);
    CHECK(*learning_rate(solver, i) == Approx(std::pow(0.1, expected[i])));
  }
}

TEST_CASE("a policy that cannot be computed is refused with its field", "[learning_rate]") {
  const auto message = [](const std::string& text) {
    const Result<float> rate = learning_rate(solver_of(text), 0);
    REQUIRE(!rate);
    CHECK(rate.error().code == ErrorCode::kConfig);
    return rate.error().message;
  };
  CHECK(message("lr_policy: \"cosine\"").find("cosine") != std::string::npos);
  CHECK(message("base_lr: 1").find("lr_policy") != std::string::npos);
  CHECK(message("lr_policy: \"step\"").find("stepsize") != std::string::npos);
  CHECK(message("lr_policy: \"sigmoid\" gamma: 1").find("stepsize") != std::string::npos);
  for (const char* policy : {"exp", "step", "multistep", "inv"}) {
    const std::string start = "stepsize: 1 lr_policy: \"" + std::string(policy) + "\" gamma: ";
    CHECK(message(start + "-1").find("gamma") != std::string::npos);
    CHECK(message(start + "nan").find("gamma") != std::string::npos);
  }
  CHECK(message("lr_policy: \"poly\"").find("max_iter") != std::string::npos);
}

}  // namespace
}  // namespace speedo
