// A time step of long short-term memory, the CPU backend against the reference.

#include <speedo/base/random.hpp>

#include "backend/conformance.hpp"
#include "support/catch.hpp"
#include "support/random_seed.hpp"

namespace speedo {
namespace {

LstmShape any_step() {
  return GENERATE(LstmShape{1, 1}, LstmShape{2, 3}, LstmShape{3, 7}, LstmShape{5, 16},
                  LstmShape{1, 131}, LstmShape{7, 33}, LstmShape{13, 64}, LstmShape{64, 100});
}

// Some streams begin a sequence, some go on, of some a part.
std::vector<float> any_cont(std::int64_t streams) {
  std::vector<float> cont;
  for (std::int64_t n = 0; n < streams; ++n) cont.push_back(static_cast<float>(n % 3) / 2.0F);
  return cont;
}

// Both passes' results, over `range` of sums; with what may be in place in place or not.
std::vector<float> compute(Workbench& bench, const LstmShape& shape, float range, bool in_place) {
  const std::int64_t cells = shape.streams * shape.cells;
  const auto part = [&](std::uint64_t seed) { return bench.put(test_values(cells, -1, 1, seed)); };
  const float* const cont = bench.put(any_cont(shape.streams));
  const float* const c_before = part(2);
  float* const sums = bench.put(test_values(4 * cells, -range, range, 1));
  float* const gates = in_place ? sums : bench.blank(4 * cells);
  float* const c = bench.blank(cells);
  float* const h = bench.blank(cells);
  bench.backend().lstm_forward(shape, {cont, c_before, sums, gates, c, h});
  auto made = join(bench.get(gates, 4 * cells), join(bench.get(c, cells), bench.get(h, cells)));
  float* const c_grad = part(3);
  float* const c_before_grad = in_place ? c_grad : bench.blank(cells);
  float* const sums_grad = in_place ? gates : bench.blank(4 * cells);
  bench.backend().lstm_backward(
      shape, {c_before, gates, c, c_grad, part(4), c_before_grad, sums_grad});
  return join(made, join(bench.get(c_before_grad, cells), bench.get(sums_grad, 4 * cells)));
}

TEST_CASE("a step of long short-term memory agrees with the reference") {
  const LstmShape shape = any_step();
  const float range = GENERATE(1.0F, 30.0F);  // at the larger one the gates are shut or open
  const bool in_place = GENERATE(false, true);
  CAPTURE(shape.streams, shape.cells, range, in_place);
  require_conforming_vectors(
      1e-6, [&](Workbench& bench) { return compute(bench, shape, range, in_place); });
}

TEST_CASE("random shapes of long short-term memory agree with the reference") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1, 2})));
  CAPTURE(seed);
  Random random(seed);
  for (int i = 0; i < 20; ++i) {
    const LstmShape shape{static_cast<std::int64_t>(1 + random.below(40)),
                          static_cast<std::int64_t>(1 + random.below(90))};
    CAPTURE(shape.streams, shape.cells);
    require_conforming_vectors(
        2e-6, [&](Workbench& bench) { return compute(bench, shape, 3.0F, i % 2 == 0); });
  }
}

TEST_CASE("gradients of long short-term memory that nobody asks for are not made") {
  const LstmShape shape{3, 20};
  const std::int64_t cells = shape.streams * shape.cells;
  const bool wants_cells = GENERATE(false, true);
  require_conforming_vectors(1e-6, [&](Workbench& bench) {
    const float* const gates = bench.put(test_values(4 * cells, 0, 1, 1));
    float* const made = bench.blank(wants_cells ? cells : 4 * cells);
    bench.backend().lstm_backward(
        shape, {bench.put(test_values(cells, -1, 1, 2)), gates,
                bench.put(test_values(cells, -1, 1, 3)), nullptr,
                bench.put(test_values(cells, -1, 1, 4)), wants_cells ? made : nullptr,
                wants_cells ? nullptr : made});
    return bench.get(made, wants_cells ? cells : 4 * cells);
  });
}

}  // namespace
}  // namespace speedo
