// Contributions that become a step, and the gradient that a step stands for, against plain loops.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/store/memory_store.hpp>
#include <speedo/store/part_store.hpp>

#include "store/chunk_range.hpp"
#include "support/catch.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"
#include "train/replicas/merger_replica.hpp"
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

// The values of each piece, in their order.
std::vector<float> piece_in(const PackedGradient& layout, const std::vector<float>& packed,
                            std::size_t piece) {
  std::vector<float> values(layout.pieces()[piece].count);
  for (const PackedGradient::Place& place : layout.places()) {
    if (place.piece != piece) continue;
    std::copy_n(packed.begin() + static_cast<std::ptrdiff_t>(place.offset), place.count,
                values.begin() + static_cast<std::ptrdiff_t>(place.first));
  }
  return values;
}

// What a contribution's gradient is at each place of the arena, in double precision.
void add_gradient(const PackedGradient& layout, const std::vector<float>& packed,
                  std::vector<double>& gradient) {
  for (std::size_t index = 0; index < layout.pieces().size(); ++index) {
    const PackedGradient::Piece& piece = layout.pieces()[index];
    const std::vector<float> values = piece_in(layout, packed, index);
    double* const target = gradient.data() + piece.arena.offset;
    if (!piece.factors) {
      for (std::size_t i = 0; i < values.size(); ++i) target[i] += values[i];
      continue;
    }
    const FactorShape& shape = *piece.factors;
    const float* const left = values.data();
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

// Puts a part's chunks into the arrays of the whole.
class PartIn : public RecordWriter {
 public:
  PartIn(const StepLayout& step, std::size_t part, std::vector<float>& whole)
      : step_(step), part_(part), whole_(whole) {}
  void write(std::size_t chunk, std::span<const float> values) override {
    const std::size_t place = part_ + chunk * step_.parts();
    const std::span<float> target = chunk_of(std::span(whole_), place);
    REQUIRE(values.size() == target.size());
    std::ranges::copy(values, target.begin());
    written_ += 1;
  }
  void set_state(std::string) override {}
  bool is_sent() const override { return true; }
  Result<void> finish() override {
    CHECK(written_ == chunk_count(step_.part_count(part_)));
    return {};
  }

 private:
  const StepLayout& step_;
  const std::size_t part_;
  std::vector<float>& whole_;
  std::size_t written_ = 0;
};

std::vector<std::span<const float>> parts_of(const std::vector<std::vector<float>>& contributions,
                                             std::size_t chunk) {
  std::vector<std::span<const float>> parts;
  for (const auto& each : contributions) parts.push_back(chunk_of(std::span(each), chunk));
  return parts;
}

// The chunks of one part of `contributions`, in any order.
void merge_all(const StepLayout& step, std::size_t part,
               const std::vector<std::vector<float>>& contributions, ChunkMerge& merge,
               Random& random) {
  std::vector<std::size_t> chunks(chunks_of_part(step.contribution().count(), part, step.parts()));
  for (std::size_t i = 0; i < chunks.size(); ++i) chunks[i] = i;
  for (std::size_t i = chunks.size(); i > 1; --i) {
    std::swap(chunks[i - 1], chunks[random.below(i)]);
  }
  for (const std::size_t chunk : chunks) {
    REQUIRE_FALSE(merge.merge(chunk, parts_of(contributions, part + chunk * step.parts())));
    merge.put(chunk);
  }
  REQUIRE(merge.finish({}));
}

// The step as its record has it, merged part by part.
std::vector<float> step_of(const StepLayout& step,
                           const std::vector<std::vector<float>>& contributions, Random& random) {
  std::vector<float> record(step.count(), std::numeric_limits<float>::quiet_NaN());
  for (std::size_t part = 0; part < step.parts(); ++part) {
    std::vector<float> values(step.part_count(part));
    const auto merge = merge_step({.step = step,
                                   .part = part,
                                   .state = {},
                                   .values = values,
                                   .writer = std::make_unique<PartIn>(step, part, record)});
    merge_all(step, part, contributions, *merge, random);
  }
  return record;
}

std::vector<float> gradient_in(const StepLayout& step, const ParameterLayout& layout,
                               const std::vector<float>& record) {
  const auto backend = test::make_backend(1);
  StepGradient gradient(*backend);
  auto arena = Arena::create(*backend, layout.element_count());
  REQUIRE(arena);
  REQUIRE(gradient.form(step, {0, layout.element_count()}, record, arena->data()));
  std::vector<float> formed(static_cast<std::size_t>(layout.element_count()));
  backend->device().download(formed, arena->data());
  return formed;
}

struct Contributed {
  explicit Contributed(std::uint64_t seed, std::size_t parts = 1)
      : random(seed), drawn(draw(random)), contribution(drawn.layout, drawn.factors, parts) {
    expected.resize(static_cast<std::size_t>(drawn.layout.element_count()));
    for (std::size_t i = 0; i < drawn.contributions; ++i) {
      all.push_back(random_values(random, contribution.count()));
      add_gradient(contribution, all.back(), expected);
    }
  }
  Random random;
  Drawn drawn;
  PackedGradient contribution;
  std::vector<std::vector<float>> all;
  std::vector<double> expected;  // their sum
};

TEST_CASE("a step is the mean of its contributions, in any order of their chunks and any parts") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1, 2, 3, 4, 5, 6})));
  const std::size_t parts = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{3},
                                     std::size_t{5}, std::size_t{16});
  CAPTURE(seed, parts);
  Contributed of(seed, parts);
  const StepLayout step(of.contribution, of.drawn.contributions, parts);
  const std::vector<float> record = step_of(step, of.all, of.random);
  const bool is_as_contributed = of.drawn.factors.empty() || of.drawn.contributions == 1;
  if (is_as_contributed) CHECK(step.count() == of.contribution.count());
  CHECK(std::ranges::none_of(record, [](float value) { return std::isnan(value); }));

  const std::vector<float> formed = gradient_in(step, of.drawn.layout, record);
  const double count = static_cast<double>(of.drawn.contributions);
  double worst = 0.0;
  for (std::size_t i = 0; i < formed.size(); ++i) {
    if (!std::isfinite(formed[i])) FAIL("element " << i << " is not finite");
    worst = std::max(worst, std::abs(formed[i] - of.expected[i] / count));
  }
  CHECK(worst < 1e-4);
  const StepLayout whole(of.contribution, of.drawn.contributions, 1);
  CHECK((formed == gradient_in(whole, of.drawn.layout, step_of(whole, of.all, of.random))));
}

TEST_CASE("a step's values lie each in one place, and zeros where there are none") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1, 2, 3, 4, 5, 6})));
  const std::size_t parts = GENERATE(std::size_t{1}, std::size_t{2}, std::size_t{7});
  CAPTURE(seed, parts);
  const Contributed of(seed, parts);
  const StepLayout step(of.contribution, of.drawn.contributions, parts);
  std::vector<int> taken(step.count());
  const auto take = [&](std::size_t offset, std::size_t count) {
    for (std::size_t i = offset; i < offset + count; ++i) taken.at(i) += 1;
  };
  std::size_t in_parts = 0;
  for (std::size_t chunk = 0; chunk < chunk_count(of.contribution.count()); ++chunk) {
    for (const StepLayout::Run& run : step.of_chunk(chunk)) {
      take(run.offset, run.count);
      CHECK((parts == 1 || run.offset / chunk_length() % parts == chunk % parts));
    }
  }
  for (std::size_t part = 0; part < parts; ++part) {
    for (const StepLayout::Range& range : step.padding(part)) take(range.offset, range.count);
    in_parts += step.part_count(part);
  }
  CHECK(std::ranges::all_of(taken, [](int times) { return times == 1; }));
  CHECK(in_parts == step.count());
}

TEST_CASE("of factors each part has as much, and a contribution is no longer by that") {
  constexpr std::size_t kParts = 4;
  ParameterLayout layout;
  const auto height = static_cast<std::int64_t>(kChunkElements / 64);
  layout.add({.layer = "values", .name = {}, .shape = Shape({7 * height, 64})});
  layout.add({.layer = "product", .name = {}, .shape = Shape({height, 64})});
  layout.add({.layer = "bias", .name = {}, .shape = Shape({height})});
  const std::vector<FactorShape> factors{
      {.slot = 1, .rows = 30, .height = height, .width = 64}};
  const PackedGradient contribution(layout, factors, kParts);
  CHECK(contribution.count() == PackedGradient(layout, factors).count());
  std::vector<std::size_t> in_part(kParts);
  std::size_t covered = 0;
  for (const PackedGradient::Place& place : contribution.places()) {
    CHECK(place.offset == covered);
    covered = place.end();
    if (!contribution.pieces()[place.piece].factors) continue;
    CHECK(place.offset / kChunkElements == (place.end() - 1) / kChunkElements);
    in_part[place.offset / kChunkElements % kParts] += place.count;
  }
  CHECK(covered == contribution.count());
  const auto all = static_cast<std::size_t>(factors[0].factor_count());
  for (const std::size_t each : in_part) {
    CHECK(each >= all / kParts);
    CHECK(each <= all / kParts + 1);
  }
  const StepLayout step(contribution, 8, kParts);
  CHECK(step.count() <= contribution.count() + 7 * all + kParts * kChunkElements);
}

TEST_CASE("the master's merge of a step is a record with its header") {
  Contributed of(3);
  const auto backend = test::make_backend(1);
  MergerReplica replica(of.drawn.layout, of.drawn.factors, 1, *backend);
  REQUIRE(replica.contribution_count() == of.contribution.count());
  const auto store = make_memory_store();
  RecordInfo info;
  info.version = 8;
  info.base_version = 7;
  info.term = 3;
  MergeJob job{};
  job.iteration = 7;
  job.lr_scale = 0.5F;
  const auto merge = replica.begin(job, of.drawn.contributions, *store, info);
  const StepLayout step(of.contribution, of.drawn.contributions, 1);
  merge_all(step, 0, of.all, *merge, of.random);
  const auto reader = store->read(step_key(3));
  REQUIRE(reader);
  CHECK((*reader)->info().version == 8);
  const auto header = decode_step_header((*reader)->info().state);
  REQUIRE(header);
  CHECK(*header == StepHeader{.iteration = 7,
                              .rate_scale = 0.5F,
                              .contributions = of.drawn.contributions,
                              .parts = 1});
  std::vector<float> read(step.count());
  REQUIRE(get(*store, step_key(3), {}, read));
  CHECK((read == step_of(step, of.all, of.random)));
}

TEST_CASE("a contribution that is not finite is named, whether as factors or not") {
  Random random(5);
  ParameterLayout layout;
  layout.add({.layer = "a", .name = {}, .shape = Shape::create({100, 60}).value()});
  layout.add({.layer = "b", .name = {}, .shape = Shape::create({50}).value()});
  const std::vector<FactorShape> factors{{.slot = 0, .rows = 3, .height = 100, .width = 60}};
  const PackedGradient contribution(layout, factors);
  const StepLayout step(contribution, 2, 1);
  const std::size_t place = GENERATE(std::size_t{2}, std::size_t{350}, std::size_t{490});
  REQUIRE(contribution.count() > 490);
  std::vector<std::vector<float>> contributions{random_values(random, contribution.count()),
                                                random_values(random, contribution.count())};
  contributions[1][place] = std::numeric_limits<float>::infinity();
  std::vector<float> record(step.count()), values(step.count());
  const auto merge = merge_step({.step = step,
                                 .part = 0,
                                 .state = {},
                                 .values = values,
                                 .writer = std::make_unique<PartIn>(step, 0, record)});
  CHECK(merge->merge(0, parts_of(contributions, 0)) == std::optional<std::size_t>(1));
}

TEST_CASE("a damaged header of a step is refused") {
  CHECK(decode_step_header("nonsense\xff").error().code == ErrorCode::kCorrupt);
  CHECK_FALSE(decode_step_header(encode(StepHeader{.contributions = 0})));
  CHECK_FALSE(decode_step_header(encode(StepHeader{.contributions = kStepContributionsMax + 1})));
  CHECK_FALSE(decode_step_header(encode(StepHeader{.parts = 0})));
  CHECK_FALSE(decode_step_header(encode(StepHeader{.parts = kRecordServersMax + 1})));
  CHECK_FALSE(decode_step_header(
      encode(StepHeader{.rate_scale = std::numeric_limits<float>::quiet_NaN()})));
}

}  // namespace
}  // namespace speedo
