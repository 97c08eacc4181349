// Contributions that become a step, and the gradient that a step stands for, against plain loops.
#include <algorithm>
#include <memory>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/store/memory_store.hpp>

#include "store/chunk_range.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"
#include "train/replicas/packed_gradient.hpp"
#include "train/replicas/step_gradient.hpp"
#include "train/replicas/step_merge.hpp"

namespace speedo {
namespace {

// A layout of a few parameters, some of them left as factors; in all more than a chunk.
struct Drawn {
  ParameterLayout layout;
  std::vector<FactorShape> factors;
  std::size_t contributions = 1;
};

Drawn draw(Random& random) {
  Drawn drawn;
  const std::uint64_t slots = 1 + random.below(5);
  for (std::uint64_t slot = 0; slot < slots; ++slot) {
    const auto height = static_cast<std::int64_t>(1 + random.below(700));
    const auto width = static_cast<std::int64_t>(1 + random.below(900));
    drawn.layout.add({.layer = "l" + std::to_string(slot), .name = {},
                      .shape = Shape::create({height, width}).value()});
    const auto rows = static_cast<std::int64_t>(1 + random.below(40));
    const FactorShape shape{.slot = slot, .rows = rows, .height = height, .width = width};
    if (shape.factor_count() <= height * width && random.below(3) != 0) {
      drawn.factors.push_back(shape);
    }
  }
  drawn.contributions = 1 + random.below(4);
  return drawn;
}

std::vector<float> random_values(Random& random, std::size_t count) {
  std::vector<float> values(count);
  for (float& value : values) value = random.uniform(-1.0F, 1.0F);
  return values;
}

// What a contribution's gradient is at each place of the arena, in double precision.
void add_gradient(const PackedGradient& layout, const std::vector<float>& packed,
                  std::vector<double>& gradient) {
  for (const PackedGradient::Piece& piece : layout.pieces()) {
    double* const target = gradient.data() + piece.arena.offset;
    if (!piece.factors) {
      for (std::size_t i = 0; i < piece.count; ++i) target[i] += packed[piece.offset + i];
      continue;
    }
    const FactorShape& shape = *piece.factors;
    const float* const left = packed.data() + piece.offset;
    const float* const right = left + shape.rows * shape.height;
    for (std::int64_t row = 0; row < shape.rows; ++row) {
      for (std::int64_t y = 0; y < shape.height; ++y) {
        const double factor = left[row * shape.height + y];
        for (std::int64_t x = 0; x < shape.width; ++x) {
          target[y * shape.width + x] += factor * right[row * shape.width + x];
        }
      }
    }
  }
}

std::unique_ptr<ChunkMerge> merge_of(const PackedGradient& contribution, const PackedGradient& step,
                                     std::vector<float>& values, RecordStore& store) {
  RecordInfo info;
  info.version = 8;
  info.base_version = 7;
  info.term = 3;
  info.element_count = step.count();
  values.assign(step.count(), 0.0F);
  return merge_step({.contribution = contribution,
                     .step = step,
                     .header = {.iteration = 7,
                                .rate_scale = 0.5F,
                                .contributions = step.contributions()},
                     .values = values,
                     .store = store,
                     .info = std::move(info)});
}

std::vector<std::span<const float>> parts_of(const std::vector<std::vector<float>>& contributions,
                                             std::size_t chunk) {
  std::vector<std::span<const float>> parts;
  for (const auto& each : contributions) parts.push_back(chunk_of(std::span(each), chunk));
  return parts;
}

TEST_CASE("a step is the mean of its contributions, in any order of their chunks") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1, 2, 3, 4, 5, 6})));
  CAPTURE(seed);
  Random random(seed);
  const Drawn drawn = draw(random);
  const PackedGradient contribution(drawn.layout, drawn.factors, 1);
  const PackedGradient step(drawn.layout, drawn.factors, drawn.contributions);
  std::vector<std::vector<float>> contributions;
  std::vector<double> expected(static_cast<std::size_t>(drawn.layout.element_count()));
  for (std::size_t i = 0; i < drawn.contributions; ++i) {
    contributions.push_back(random_values(random, contribution.count()));
    add_gradient(contribution, contributions.back(), expected);
  }
  const auto store = make_memory_store();
  std::vector<float> values;
  {
    const auto merge = merge_of(contribution, step, values, *store);
    std::vector<std::size_t> chunks(chunk_count(contribution.count()));
    for (std::size_t i = 0; i < chunks.size(); ++i) chunks[i] = i;
    for (std::size_t i = chunks.size(); i > 1; --i) {
      std::swap(chunks[i - 1], chunks[random.below(i)]);
    }
    for (const std::size_t chunk : chunks) {
      REQUIRE_FALSE(merge->merge(chunk, parts_of(contributions, chunk)));
      merge->put(chunk);
    }
    REQUIRE(merge->finish({}));
  }
  const auto reader = store->read(step_key(3));
  REQUIRE(reader);
  CHECK((*reader)->info().version == 8);
  const auto header = decode_step_header((*reader)->info().state);
  REQUIRE(header);
  CHECK(header->iteration == 7);
  CHECK(header->rate_scale == 0.5F);
  CHECK(header->contributions == drawn.contributions);
  std::vector<float> read(step.count());
  REQUIRE(get(*store, step_key(3), {}, read));
  CHECK(read == values);

  const auto backend = test::make_backend(1);
  StepGradient gradient(*backend);
  auto arena = Arena::create(*backend, drawn.layout.element_count());
  REQUIRE(arena);
  REQUIRE(gradient.form(step, {0, drawn.layout.element_count()}, read, arena->data()));
  std::vector<float> formed(expected.size());
  backend->device().download(formed, arena->data());
  const double count = static_cast<double>(drawn.contributions);
  double worst = 0.0;
  for (std::size_t i = 0; i < formed.size(); ++i) {
    worst = std::max(worst, std::abs(formed[i] - expected[i] / count));
  }
  CHECK(worst < 1e-4);
}

TEST_CASE("a contribution that is not finite is named, whether as factors or not") {
  Random random(5);
  ParameterLayout layout;
  layout.add({.layer = "a", .name = {}, .shape = Shape::create({100, 60}).value()});
  layout.add({.layer = "b", .name = {}, .shape = Shape::create({50}).value()});
  const std::vector<FactorShape> factors{{.slot = 0, .rows = 3, .height = 100, .width = 60}};
  const PackedGradient contribution(layout, factors, 1);
  const PackedGradient step(layout, factors, 2);
  const std::size_t place = GENERATE(std::size_t{2}, std::size_t{350}, std::size_t{490});
  REQUIRE(contribution.count() > 490);
  std::vector<std::vector<float>> contributions{random_values(random, contribution.count()),
                                                random_values(random, contribution.count())};
  contributions[1][place] = std::numeric_limits<float>::infinity();
  const auto store = make_memory_store();
  std::vector<float> values;
  const auto merge = merge_of(contribution, step, values, *store);
  CHECK(merge->merge(0, parts_of(contributions, 0)) == std::optional<std::size_t>(1));
}

TEST_CASE("a damaged header of a step is refused") {
  CHECK(decode_step_header("nonsense\xff").error().code == ErrorCode::kCorrupt);
  CHECK_FALSE(decode_step_header(encode(StepHeader{.contributions = 0})));
  CHECK_FALSE(decode_step_header(encode(StepHeader{.contributions = kStepContributionsMax + 1})));
  CHECK_FALSE(decode_step_header(
      encode(StepHeader{.rate_scale = std::numeric_limits<float>::quiet_NaN()})));
}

}  // namespace
}  // namespace speedo
