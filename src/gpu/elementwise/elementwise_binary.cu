// The functions of BinaryKind.

#include "gpu/elementwise/elementwise.hpp"

#include "gpu/elementwise/unary_math.hpp"
#include "gpu/launch/launch.hpp"
#include "gpu/support/elements.hpp"

namespace speedo::gpu {
namespace {

struct ZipKernel {
  static constexpr const char* kName = "zip";
  BinaryKind kind;
  float a, b;
  Activation activation;
  std::int64_t n;
  ZipArrays arrays;  // y is x where it is not read
  bool by_fours;

  SPEEDO_HOST_DEVICE int phases() const { return 1; }
  SPEEDO_HOST_DEVICE void run(int /*phase*/, const Lane& lane) const {
    for_each_element(lane, n, by_fours, [&](auto at) {
      const auto x = at.load(arrays.x), y = at.load(arrays.y);
      if (arrays.winners != nullptr) note_winners(at, x, y);
      at.store(arrays.z, each([&](float v, float w) { return activation(value(v, w)); }, x, y));
    });
  }

 private:
  SPEEDO_HOST_DEVICE float value(float x, float y) const {
    switch (kind) {
      case BinaryKind::kSum:
        return b == 0.0F ? a * x : a * x + b * y;
      case BinaryKind::kProduct:
        return x * y;
      case BinaryKind::kQuotient:
        return x / y;
      case BinaryKind::kMaximum:
        return x > y ? x : y;
      case BinaryKind::kChosen:
        return x == a ? y : 0.0F;
    }
    return x;
  }

  template <class Place, class Values>
  SPEEDO_HOST_DEVICE void note_winners(Place at, Values x, Values y) const {
    if (b >= 0.0F) {
      at.store(arrays.winners, each([&](float v, float w) { return v > w ? a : b; }, x, y));
      return;
    }
    const auto before = at.load(arrays.winners);
    const auto f = [&](float v, float w, float kept) { return v > w ? a : kept; };
    at.store(arrays.winners, each(f, x, y, before));
  }
};

}  // namespace

void zip(Queue& queue, const BinaryOp& op, std::int64_t n, const ZipArrays& arrays) {
  if (n == 0) return;
  ZipArrays read = arrays;
  if (op.kind == BinaryKind::kSum && op.b == 0.0F) read.y = arrays.x;
  if (op.kind != BinaryKind::kMaximum) read.winners = nullptr;
  launch(queue, grid_for(queue, n, 4),
         ZipKernel{op.kind, op.a, op.b, Activation(op.activation), n, read,
                   are_aligned(read.x, read.y, read.z, read.winners)});
}

}  // namespace speedo::gpu
