#include "train/replicas/step_gradient.hpp"

#include <speedo/base/assert.hpp>

namespace speedo {

Result<void> StepGradient::form(const PackedGradient& step, const Bucket& part,
                                std::span<const float> values, float* gradients) {
  SPEEDO_ASSERT(values.size() == step.count());
  for (const PackedGradient::Piece& piece : step.pieces()) {
    const Bucket common = common_part(piece.arena, part);
    if (common.count == 0) continue;
    if (!piece.factors) {
      const auto within = static_cast<std::size_t>(common.offset - piece.arena.offset);
      backend_.device().upload(
          gradients + common.offset,
          values.subspan(piece.offset + within, static_cast<std::size_t>(common.count)));
      continue;
    }
    SPEEDO_ASSERT(common == piece.arena);
    SPEEDO_TRY(form_product(piece, step.contributions(),
                            values.subspan(piece.offset, piece.count), gradients));
  }
  return {};
}

// The rows of all contributions are the rows of one product.
Result<void> StepGradient::form_product(const PackedGradient::Piece& piece,
                                        std::size_t contributions, std::span<const float> values,
                                        float* gradients) {
  const FactorShape& shape = *piece.factors;
  const float* factors = values.data();
  if (backend_.device().memory() != MemoryKind::kHost) {
    const auto count = static_cast<std::int64_t>(values.size());
    if (factors_.size() < count) {
      SPEEDO_ASSIGN(factors_, Arena::create(backend_, count));
    }
    backend_.device().upload(factors_.data(), values);
    factors = factors_.data();
  }
  const std::int64_t rows = shape.rows * static_cast<std::int64_t>(contributions);
  const float mean = 1.0F / static_cast<float>(contributions);
  backend_.gemm({Op::kTranspose, Op::kNone, {shape.height, shape.width, rows}, mean, 0.0F}, factors,
                factors + rows * shape.height, gradients + piece.arena.offset);
  return {};
}

}  // namespace speedo
