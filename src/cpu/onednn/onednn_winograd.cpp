#include "cpu/onednn/onednn_winograd.hpp"

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
  return shape.kernel.size() == 2 && all_are(shape.kernel, 3) && all_are(shape.stride, 1) &&
         all_are(shape.dilation, 1) && shape.groups == 1 && shape.channels >= kChannelsWanted &&
         shape.outputs >= kChannelsWanted && winograd_tiles(shape) * samples >= kTilesWanted;
}

}  // namespace speedo::cpu::onednn
