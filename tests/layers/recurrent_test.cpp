// LSTM, RNN and LSTMUnit: gradients, values that Caffe defines, and what they refuse.

#include <cmath>

#include <speedo/base/random.hpp>

#include "support/catch.hpp"
#include "support/gradient_check.hpp"
#include "support/kernels.hpp"
#include "support/layer_fixture.hpp"
#include "support/random_seed.hpp"
#include "support/wrong_layer.hpp"

namespace speedo {
namespace {

using Values = std::vector<float>;

// The states are bottoms, so that every pass begins with the same; no gradient passes through them.
TEST_CASE("gradient: LSTM, RNN") {
  const auto type = GENERATE(as<std::string>(), "LSTM", "RNN");
  const std::string text =
      "type: '" + type + "' recurrent_param { num_output: 3 expose_hidden: true }";
  const bool has_cells = type == "LSTM";
  const auto with_states = [&](std::vector<Shape> bottoms, std::int64_t streams) {
    for (int i = 0; i < (has_cells ? 2 : 1); ++i) bottoms.push_back({1, streams, 3});
    return bottoms;
  };
  const auto check = [&](std::vector<Shape> bottoms, int cut) {
    const std::int64_t streams = bottoms[0][1];
    check_on_all(text, {.bottoms = with_states(std::move(bottoms), streams),
                        .tops = has_cells ? 3 : 2,
                        .label_bottom = 1,
                        .classes = 2,
                        .cut_bottoms = cut});
  };
  check({{4, 2, 2, 2}, {4, 2}}, 2);
  check({{1, 3, 5}, {1, 3}}, 2);
  check({{3, 2, 4}, {3, 2}, {2, 3}}, 3);
}

TEST_CASE("gradient: LSTMUnit") {
  check_on_all("type: 'LSTMUnit'", {.bottoms = {{1, 3, 4}, {1, 3, 16}, {1, 3}},
                                    .tops = 2,
                                    .label_bottom = 2,
                                    .classes = 2});
}

Values drawn(Random& random, std::int64_t count) {
  Values values;
  for (std::int64_t i = 0; i < count; ++i) values.push_back(random.uniform(-1.0F, 1.0F));
  return values;
}

void draw_parameters(LayerFixture& it, std::uint64_t seed) {
  Random random(seed);
  for (std::size_t p = 0; p < it.parameter_count(); ++p) {
    it.parameter(p).set_values(it.backend(), drawn(random, it.parameter(p).count()));
  }
}

// Row `row` of W times x.
double product(const Values& weights, std::size_t row, const Values& x, std::size_t first,
               std::size_t count) {
  double sum = 0.0;
  for (std::size_t i = 0; i < count; ++i) sum += double{weights[row * count + i]} * x[first + i];
  return sum;
}

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

void require_close(const Values& got, const Values& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i);
    REQUIRE(double{got[i]} == Approx(double{expected[i]}).margin(2e-6));
  }
}

// Three steps of two streams with values for all steps, as Caffe's unrolled net has them; cont is
// a factor, and neither 0 nor 1 for one of them.
struct Sequence {
  std::size_t steps = 3, streams = 2, inputs = 4, constants = 3, cells = 5;
  Values x, cont{1, 0, 0, 1, 0.5F, 1}, constant;
};

Sequence draw_sequence() {
  Sequence s;
  Random random(test::varied(5));
  s.x = drawn(random, 24);
  s.constant = drawn(random, 6);
  return s;
}

std::unique_ptr<LayerFixture> build(const std::string& type, const Sequence& s) {
  auto it = std::make_unique<LayerFixture>("type: '" + type + "' recurrent_param { num_output: 5 }",
                                           test::make_backend(2));
  REQUIRE(it->build({{3, 2, 4}, {3, 2}, {2, 3}}, 1).has_value());
  it->set_bottom(0, s.x);
  it->set_bottom(1, s.cont);
  it->set_bottom(2, s.constant);
  draw_parameters(*it, test::varied(6));
  return it;
}

std::vector<Values> parameters_of(LayerFixture& it) {
  std::vector<Values> all;
  for (std::size_t p = 0; p < it.parameter_count(); ++p) {
    all.push_back(it.parameter(p).values(it.backend()));
  }
  return all;
}

TEST_CASE("LSTM computes Caffe's formulas") {
  const Sequence s = draw_sequence();
  auto it = build("LSTM", s);
  REQUIRE(it->parameter_count() == 4);
  const auto p = parameters_of(*it);
  REQUIRE(it->parameter(0).shape() == Shape{20, 4});
  REQUIRE(it->parameter(1).shape() == Shape{20});
  REQUIRE(it->parameter(2).shape() == Shape{20, 3});
  REQUIRE(it->parameter(3).shape() == Shape{20, 5});
  Values h(10, 0.0F), c(10, 0.0F), expected;
  for (std::size_t t = 0; t < s.steps; ++t) {
    for (std::size_t n = 0; n < s.streams; ++n) {
      const double cont = s.cont[t * s.streams + n];
      double sums[20];
      for (std::size_t row = 0; row < 20; ++row) {
        sums[row] = p[1][row] + product(p[0], row, s.x, (t * s.streams + n) * 4, 4) +
                    product(p[2], row, s.constant, n * 3, 3) +
                    cont * product(p[3], row, h, n * 5, 5);
      }
      for (std::size_t k = 0; k < 5; ++k) {
        float& cell = c[n * 5 + k];
        cell = static_cast<float>(cont * sigmoid(sums[5 + k]) * cell +
                                  sigmoid(sums[k]) * std::tanh(sums[15 + k]));
        h[n * 5 + k] = static_cast<float>(sigmoid(sums[10 + k]) * std::tanh(cell));
      }
    }
    expected.insert(expected.end(), h.begin(), h.end());
  }
  REQUIRE(it->forward().has_value());
  require_close(it->top_values(0), expected);
}

TEST_CASE("RNN computes Caffe's formulas") {
  const Sequence s = draw_sequence();
  auto it = build("RNN", s);
  REQUIRE(it->parameter_count() == 6);
  const auto p = parameters_of(*it);
  REQUIRE(it->parameter(2).shape() == Shape{5, 3});
  REQUIRE(it->parameter(3).shape() == Shape{5, 5});
  REQUIRE(it->parameter(4).shape() == Shape{5, 5});
  REQUIRE(it->parameter(5).shape() == Shape{5});
  Values h(10, 0.0F), expected;
  for (std::size_t t = 0; t < s.steps; ++t) {
    const Values before = h;
    for (std::size_t n = 0; n < s.streams; ++n) {
      for (std::size_t k = 0; k < 5; ++k) {
        h[n * 5 + k] = static_cast<float>(
            std::tanh(p[1][k] + product(p[0], k, s.x, (t * s.streams + n) * 4, 4) +
                      product(p[2], k, s.constant, n * 3, 3) +
                      s.cont[t * s.streams + n] * product(p[3], k, before, n * 5, 5)));
      }
    }
    for (std::size_t n = 0; n < s.streams; ++n) {
      for (std::size_t k = 0; k < 5; ++k) {
        expected.push_back(
            static_cast<float>(std::tanh(p[5][k] + product(p[4], k, h, n * 5, 5))));
      }
    }
  }
  REQUIRE(it->forward().has_value());
  require_close(it->top_values(0), expected);
}

// Of steps first .. first + count - 1.
Values part_of(const Values& all, std::size_t row, std::size_t first, std::size_t count) {
  const auto begin = all.begin() + static_cast<std::ptrdiff_t>(first * row);
  return {begin, begin + static_cast<std::ptrdiff_t>(count * row)};
}

TEST_CASE("a pass goes on from where the one before ended") {
  const auto type = GENERATE(as<std::string>(), "LSTM", "RNN");
  const std::string text = "type: '" + type + "' recurrent_param { num_output: 5 }";
  LayerFixture whole(text, test::make_backend(1)), halves(text, test::make_backend(1));
  REQUIRE(whole.build({{4, 2, 3}, {4, 2}}, 1).has_value());
  REQUIRE(halves.build({{2, 2, 3}, {2, 2}}, 1).has_value());
  Random random(test::varied(7));
  const Values x = drawn(random, 24), cont{0, 0, 1, 1, 1, 0, 1, 1};
  for (LayerFixture* it : {&whole, &halves}) draw_parameters(*it, 8);
  whole.set_bottom(0, x);
  whole.set_bottom(1, cont);
  REQUIRE(whole.forward().has_value());
  for (const std::size_t first : {0, 2}) {
    halves.set_bottom(0, part_of(x, 6, first, 2));
    halves.set_bottom(1, part_of(cont, 2, first, 2));
    REQUIRE(halves.forward().has_value());
    require_close(halves.top_values(0), part_of(whole.top_values(0), 10, first, 2));
    halves.backward();
  }
  // The next pass begins where the whole ended, unless its sequences begin anew.
  const Values again = whole.top_values(0);
  REQUIRE(whole.forward().has_value());
  require_close(whole.top_values(0), again);
  whole.set_bottom(1, Values(8, 1.0F));
  REQUIRE(whole.forward().has_value());
  const Values carried = whole.top_values(0);
  REQUIRE(std::fabs(carried[0] - again[0]) > 1e-5F);
}

TEST_CASE("states that are exposed come in and go out") {
  const auto type = GENERATE(as<std::string>(), "LSTM", "RNN");
  const bool has_cells = type == "LSTM";
  const std::string options = "type: '" + type + "' recurrent_param { num_output: 5 ";
  LayerFixture hidden(options + "}", test::make_backend(1));
  LayerFixture exposed(options + "expose_hidden: true }", test::make_backend(1));
  std::vector<Shape> bottoms{{2, 3, 4}, {2, 3}};
  REQUIRE(hidden.build(bottoms, 1).has_value());
  for (int i = 0; i < (has_cells ? 2 : 1); ++i) bottoms.push_back({1, 3, 5});
  REQUIRE(exposed.build(bottoms, has_cells ? 3 : 2).has_value());
  Random random(test::varied(9));
  for (LayerFixture* it : {&hidden, &exposed}) {
    draw_parameters(*it, 10);
    it->set_bottom(1, Values(6, 1.0F));
  }
  for (std::size_t b = 2; b < bottoms.size(); ++b) exposed.set_bottom(b, Values(15, 0.0F));
  for (int pass = 0; pass < 3; ++pass) {
    const Values x = drawn(random, 24);
    for (LayerFixture* it : {&hidden, &exposed}) {
      it->set_bottom(0, x);
      REQUIRE(it->forward().has_value());
    }
    require_close(exposed.top_values(0), hidden.top_values(0));
    if (has_cells) REQUIRE(exposed.top_values(1) == part_of(exposed.top_values(0), 15, 1, 1));
    for (std::size_t b = 2; b < bottoms.size(); ++b) {
      exposed.set_bottom(b, exposed.top_values(b - 1));
    }
  }
}

TEST_CASE("streams that come and go keep the memory of the states, as in Caffe") {
  LayerFixture it("type: 'LSTM' recurrent_param { num_output: 1 }", test::make_backend(1));
  REQUIRE(it.build({{1, 3, 1}, {1, 3}}, 1).has_value());
  draw_parameters(it, 11);
  it.set_bottom(0, {1, 2, 3});
  it.set_bottom(1, {0, 0, 0});
  REQUIRE(it.forward().has_value());
  REQUIRE(it.reshape({{1, 2, 1}, {1, 2}}).has_value());
  const auto run = [&](const Values& x, const Values& cont) {
    it.set_bottom(0, x);
    it.set_bottom(1, cont);
    REQUIRE(it.forward().has_value());
    return it.top_values(0);
  };
  // Stream 0 goes on, stream 1 begins.
  const Values two = run({1, 2}, {1, 0});
  REQUIRE(it.reshape({{1, 4, 1}, {1, 4}}).has_value());
  const Values four = run({1, 1, 1, 1}, {1, 1, 1, 0});
  REQUIRE(two[0] != two[1]);
  // More streams than there is memory of: all states are zeros again.
  REQUIRE(four[0] == Approx(four[3]));
  REQUIRE(four[1] == Approx(four[3]));
}

TEST_CASE("a pass without streams is none") {
  LayerFixture it("type: 'LSTM' recurrent_param { num_output: 2 }", test::make_backend(1));
  REQUIRE(it.build({{3, 2, 4}, {3, 2}}, 1).has_value());
  REQUIRE(it.reshape({{3, 0, 4}, {3, 0}}).has_value());
  REQUIRE(it.forward().has_value());
  it.backward();
  REQUIRE(it.top_values(0).empty());
}

TEST_CASE("a sequence of another length than the first is refused, other streams are not") {
  LayerFixture it("type: 'LSTM' recurrent_param { num_output: 2 }", test::make_backend(1));
  REQUIRE(it.build({{5, 2, 3}, {5, 2}}, 1).has_value());
  REQUIRE(it.reshape({{5, 4, 3}, {5, 4}}).has_value());
  REQUIRE(it.top(0).shape() == Shape{5, 4, 2});
  const auto refused = it.reshape({{6, 2, 3}, {6, 2}});
  REQUIRE_FALSE(refused.has_value());
  REQUIRE(refused.error().message.find("was set up for 5 steps") != std::string::npos);
  REQUIRE(refused.error().message.find("has 6") != std::string::npos);
  const auto other = it.reshape({{5, 2, 4}, {5, 2}});
  REQUIRE_FALSE(other.has_value());
  REQUIRE(other.error().message.find("has weights for 3 values") != std::string::npos);
}

TEST_CASE("impossible recurrent layers are refused by name") {
  const std::vector<WrongLayer> cases{
      {"type: 'LSTM' recurrent_param { num_output: 2 }", {{3, 2, 4}}, 1, "takes 2 to 3 bottom(s)"},
      {"type: 'LSTM' recurrent_param { num_output: 2 expose_hidden: true }",
       {{3, 2, 4}, {3, 2}},
       3,
       "takes 4 to 5 bottom(s)"},
      {"type: 'LSTM' recurrent_param { num_output: 2 expose_hidden: true }",
       {{3, 2, 4}, {3, 2}, {1, 2, 2}, {1, 2, 2}},
       1,
       "makes 3 top(s)"},
      {"type: 'RNN' recurrent_param { num_output: 2 expose_hidden: true }",
       {{3, 2, 4}, {3, 2}},
       2,
       "takes 3 to 4 bottom(s)"},
      {"type: 'LSTM'", {{3, 2, 4}, {3, 2}}, 1, "num_output > 0"},
      {"type: 'LSTM' recurrent_param { num_output: 2 }", {{3, 2}, {3, 2}}, 1, "3 axes or more"},
      {"type: 'LSTM' recurrent_param { num_output: 2 }", {{0, 2, 4}, {0, 2}}, 1, "is empty"},
      {"type: 'LSTM' recurrent_param { num_output: 2 }", {{3, 2, 0}, {3, 2}}, 1, "is empty"},
      {"type: 'LSTM' recurrent_param { num_output: 2 }",
       {{3, 2, 4}, {2, 2}},
       1,
       "bottom 1 must have one value for each step and stream of bottom 0, 3 2 (6), it is 2 2 (4)"},
      {"type: 'LSTM' recurrent_param { num_output: 2 }", {{3, 2, 4}, {3, 2, 1}}, 1, "3 2 1 (6)"},
      {"type: 'LSTM' recurrent_param { num_output: 2 }",
       {{3, 2, 4}, {3, 2}, {2}},
       1,
       "bottom 2 must be streams x values"},
      {"type: 'LSTM' recurrent_param { num_output: 2 }",
       {{3, 2, 4}, {3, 2}, {3, 5}},
       1,
       "bottom 2 must have 5 values for each of the 2 streams, it is 3 5 (15)"},
      {"type: 'LSTM' recurrent_param { num_output: 2 expose_hidden: true }",
       {{3, 2, 4}, {3, 2}, {1, 2, 2}, {1, 2, 3}},
       3,
       "bottom 3 is a state and must be 1 2 2 (4), it is 1 2 3 (6)"},
      {"type: 'LSTM' recurrent_param { num_output: 4000000000 }",
       {{3, 2, 4}, {3, 2}},
       1,
       "more than 2147483647 elements"},
      {"type: 'RNN' recurrent_param { num_output: 50000 }",
       {{3, 2, 4}, {3, 2}},
       1,
       "more than 2147483647 elements"},
      {"type: 'LSTM' recurrent_param { num_output: 1000 }",
       {{1000000, 1, 4}, {1000000, 1}},
       1,
       "take fewer steps or streams at once"},
      {"type: 'LSTMUnit'", {{1, 2, 3}, {1, 2, 12}}, 2, "takes 3 bottom(s)"},
      {"type: 'LSTMUnit'", {{1, 2, 3}, {1, 2, 12}, {1, 2}}, 1, "makes 2 top(s)"},
      {"type: 'LSTMUnit'", {{2, 2, 3}, {2, 2, 12}, {2, 2}}, 2, "one layer is one time step"},
      {"type: 'LSTMUnit'",
       {{1, 2, 3}, {1, 2, 9}, {1, 2}},
       2,
       "bottom 1 must have 4 values for each of the 3 cells, 1 2 12 (24), it is 1 2 9 (18)"},
      {"type: 'LSTMUnit'",
       {{1, 2, 3}, {1, 2, 12}, {1, 3}},
       2,
       "bottom 2 must have one value for each of the 2 streams, 1 2 (2), it is 1 3 (3)"},
  };
  require_refused(GENERATE_COPY(from_range(cases)));
}

}  // namespace
}  // namespace speedo
