#include "cpu/onednn_winograd.hpp"

#include <algorithm>

namespace speedo::cpu::onednn {
namespace {

constexpr std::int64_t kTile = 4, kTilesWanted = 64, kChannelsWanted = 32;

}  // namespace

std::int64_t winograd_tiles(const ConvolutionShape& shape) {
  std::int64_t count = 1;
  for (const std::int64_t size : shape.dst_size) count *= (size + kTile - 1) / kTile;
  return count;
}

bool suits_winograd(const ConvolutionShape& shape, std::int64_t samples) {
  const auto all = [](const std::vector<std::int64_t>& sizes, std::int64_t wanted) {
    return std::all_of(sizes.begin(), sizes.end(),
                       [&](std::int64_t size) { return size == wanted; });
  };
  return shape.kernel.size() == 2 && all(shape.kernel, 3) && all(shape.stride, 1) &&
         all(shape.dilation, 1) && shape.groups == 1 && shape.channels >= kChannelsWanted &&
         shape.outputs >= kChannelsWanted && winograd_tiles(shape) * samples >= kTilesWanted;
}

}  // namespace speedo::cpu::onednn
