// The functions of BinaryKind.

#include "gpu/elementwise/elementwise.hpp"

#include "gpu/elementwise/unary_math.hpp"
#include "gpu/launch/launch.hpp"
#include "gpu/support/elements.hpp"
#include "gpu/support/multiply_add.hpp"

namespace speedo::gpu {
namespace {

struct ZipKernel {
  static constexpr const char* kName = "zip";
  MultiplyAdd multiply_add;
  BinaryKind kind;
  float a, b;
  Activation activation;
  std::int64_t n;
  ArrayFrom x, y;  // y is x where it is not read
  ArrayTo z;
  float* winners;  // null: not asked for
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for_each_element(lane, n, x.type, by_fours, [&](auto at) {
      const auto of_x = at.load(x), of_y = at.load(y);
      if (winners != nullptr) note_winners(at, of_x, of_y);
      at.store(z, each([&](float v, float w) { return activation(value(v, w)); }, of_x, of_y));
    });
  }

 private:
  SPEEDO_HOST_DEVICE float value(float v, float w) const {
    switch (kind) {
      case BinaryKind::kSum:
        return b == 0.0F ? a * v : multiply_add(a, v, b * w);
      case BinaryKind::kProduct:
        return v * w;
      case BinaryKind::kQuotient:
        return v / w;
      case BinaryKind::kMaximum:
        return v > w ? v : w;
      case BinaryKind::kChosen:
        return v == a ? w : 0.0F;
    }
    return v;
  }

  template <class Place, class Values>
  SPEEDO_HOST_DEVICE void note_winners(Place at, Values of_x, Values of_y) const {
    if (b >= 0.0F) {
      at.store(winners, each([&](float v, float w) { return v > w ? a : b; }, of_x, of_y));
      return;
    }
    const auto before = at.load(static_cast<const float*>(winners));
    const auto f = [&](float v, float w, float kept) { return v > w ? a : kept; };
    at.store(winners, each(f, of_x, of_y, before));
  }
};

}  // namespace

void zip(Queue& queue, const BinaryOp& op, Elements n, const ZipArrays& arrays) {
  if (n.count == 0) return;
  const bool reads_y = op.kind != BinaryKind::kSum || op.b != 0.0F;
  const ArrayFrom x{arrays.x, n.type}, y{reads_y ? arrays.y : arrays.x, n.type};
  const ArrayTo z{arrays.z, n.type};
  float* const winners = op.kind == BinaryKind::kMaximum ? arrays.winners : nullptr;
  SPEEDO_ASSERT(winners == nullptr || n.type == ElementType::kFloat32);
  launch(queue, grid_for(queue, n.count, 4),
         ZipKernel{{queue.fuses}, op.kind, op.a, op.b, Activation(op.activation), n.count, x, y, z,
                   winners, are_aligned(x, y, z, winners)});
}

}  // namespace speedo::gpu
