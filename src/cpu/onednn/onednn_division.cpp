#include "cpu/onednn/onednn_division.hpp"

#include <algorithm>

#include "cpu/onednn/onednn_winograd.hpp"

namespace speedo::cpu::onednn {
namespace {

// Each part reads all channels of the other side, and must be worth that.
constexpr std::int64_t kPartChannelsMin = 64;
// With fewer tiles of Winograd's in each, threads that divide the samples spend too much on the
// weights' transform, which each of them does for all channels.
constexpr std::int64_t kTilesEach = 128;

bool may_divide(ConvolutionShape shape, ConvolutionPass pass, std::int64_t parts) {
  if (parts == 1) return true;
  const bool data = pass == ConvolutionPass::kBackwardData;
  const std::int64_t block = data ? shape.src_layout.block : shape.dst_layout.block;
  const std::int64_t channels = divided_channels(shape, pass);
  return shape.groups == 1 && (block == 8 || block == 16) && channels % (block * parts) == 0 &&
         channels / parts >= kPartChannelsMin;
}

}  // namespace

WorkDivision divide_work(const ConvolutionShape& shape, ConvolutionPass pass,
                         CpuPrecision precision, int threads) {
  const bool winograd = precision == CpuPrecision::kFloat32 && suits_winograd(shape, shape.batch);
  WorkDivision best = divide_samples(shape, threads);
  for (std::int64_t parts = 1; parts <= threads; ++parts) {
    if (threads % parts != 0 || !may_divide(shape, pass, parts)) continue;
    const std::int64_t batch_parts = std::min(threads / parts, shape.batch);
    best = {batch_parts, parts};
    const std::int64_t samples = (shape.batch + batch_parts - 1) / batch_parts;
    const bool enough = !winograd || winograd_tiles(shape) * samples >= kTilesEach;
    if (best.units() == threads && enough) break;
  }
  return best;
}

WorkDivision divide_samples(const ConvolutionShape& shape, int threads) {
  return {std::min<std::int64_t>(threads, shape.batch), 1};
}

std::int64_t& divided_channels(ConvolutionShape& shape, ConvolutionPass pass) {
  return pass == ConvolutionPass::kBackwardData ? shape.channels : shape.outputs;
}

ConvolutionShape part_of(ConvolutionShape shape, ConvolutionPass pass, WorkDivision division) {
  divided_channels(shape, pass) /= division.channel_parts;
  return shape;
}

}  // namespace speedo::cpu::onednn
