#include "train/replicas/step_gradient.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

namespace speedo {

Result<void> StepGradient::form(const StepLayout& step, const Bucket& part,
                                std::span<const float> values, float* gradients) {
  SPEEDO_ASSERT(values.size() == step.count());
  const auto pieces = step.contribution().pieces();
  for (std::size_t piece = 0; piece < pieces.size(); ++piece) {
    const Bucket common = common_part(pieces[piece].arena, part);
    if (common.count == 0) continue;
    if (!pieces[piece].factors) {
      form_values(step, piece, common, values, gradients);
      continue;
    }
    SPEEDO_ASSERT(common == pieces[piece].arena);
    SPEEDO_TRY(form_product(step, piece, values, gradients));
  }
  return {};
}

void StepGradient::form_values(const StepLayout& step, std::size_t piece, const Bucket& part,
                               std::span<const float> values, float* gradients) {
  const Bucket& whole = step.contribution().pieces()[piece].arena;
  for (const StepLayout::Run& run : step.of_piece(piece)) {
    const Bucket of_run{whole.offset + static_cast<std::int64_t>(run.first),
                        static_cast<std::int64_t>(run.count)};
    const Bucket common = common_part(of_run, part);
    if (common.count == 0) continue;
    const auto within = static_cast<std::size_t>(common.offset - of_run.offset);
    backend_.device().upload(
        gradients + common.offset,
        values.subspan(run.offset + within, static_cast<std::size_t>(common.count)));
  }
}

// The rows of all contributions are the rows of one product.
Result<void> StepGradient::form_product(const StepLayout& step, std::size_t piece,
                                        std::span<const float> values, float* gradients) {
  const std::span<const float> gathered = gather(step, piece, values);
  const float* factors = gathered.data();
  if (backend_.device().memory() != MemoryKind::kHost) {
    SPEEDO_TRY(make_room(gathered.size()));
    backend_.device().upload(factors_.data(), gathered);
    factors = factors_.data();
  }
  const PackedGradient::Piece& of = step.contribution().pieces()[piece];
  const FactorShape& shape = *of.factors;
  const std::int64_t rows = shape.rows * static_cast<std::int64_t>(step.contributions());
  const float mean = 1.0F / static_cast<float>(step.contributions());
  backend_.gemm({Op::kTranspose, Op::kNone, {shape.height, shape.width, rows}, mean, 0.0F}, factors,
                factors + rows * shape.height, gradients + of.arena.offset);
  return {};
}

// Products that were queued before may still read what is there.
Result<void> StepGradient::make_room(std::size_t count) {
  if (factors_.size() >= static_cast<std::int64_t>(count)) return {};
  backend_.device().synchronize();
  SPEEDO_ASSIGN(factors_, Arena::create(backend_, static_cast<std::int64_t>(count)));
  return {};
}

std::span<const float> StepGradient::gather(const StepLayout& step, std::size_t piece,
                                            std::span<const float> values) {
  const FactorShape& shape = *step.contribution().pieces()[piece].factors;
  const auto left = static_cast<std::size_t>(shape.rows * shape.height);
  const auto right = static_cast<std::size_t>(shape.rows * shape.width);
  gathered_.resize(step.contribution().pieces().size());
  std::vector<float>& gathered = gathered_[piece];
  gathered.resize(step.contributions() * (left + right));
  const auto copy = [&](std::size_t to, std::size_t from, std::size_t count) {
    std::ranges::copy(values.subspan(from, count), std::span(gathered).subspan(to).begin());
  };
  for (const StepLayout::Run& run : step.of_piece(piece)) {
    const std::size_t lefts = run.first < left ? std::min(left - run.first, run.count) : 0;
    if (lefts > 0) copy(run.copy * left + run.first, run.offset, lefts);
    if (lefts == run.count) continue;
    const std::size_t in_right = run.first + lefts - left;
    copy(step.contributions() * left + run.copy * right + in_right, run.offset + lefts,
         run.count - lefts);
  }
  return gathered;
}

}  // namespace speedo
