#include "core/layers/tile.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "caffe.pb.h"

namespace speedo {

Result<void> TileLayer::reshape(Tensors bottoms, Tensors tops) {
  const auto& options = parameter_message().tile_param();
  const Shape& bottom = bottoms[0]->shape();
  const auto axis = bottom.canonical_axis(options.axis());
  if (!axis) return error(axis.error().message);
  if (!options.has_tiles()) return error("tile_param needs tiles, how often to repeat the bottom");
  tiles_ = options.tiles();
  if (tiles_ < 1) return error(fmt::format("tiles is {}, it must be at least 1", tiles_));
  std::vector<std::int64_t> dims = bottom.dims();
  dims[static_cast<std::size_t>(*axis)] *= tiles_;
  auto top = Shape::create(std::move(dims));
  if (!top) return error(top.error().message);
  tops[0]->reshape(*top);
  outer_ = bottom.count(0, *axis);
  inner_ = bottom.count(*axis);
  return {};
}

Result<void> TileLayer::forward(Tensors bottoms, Tensors tops) {
  if (tops[0]->count() == 0) return {};
  float* const top = tops[0]->data();
  const std::int64_t row = tiles_ * inner_;
  backend().copy_rows(outer_, inner_, bottoms[0]->data(), inner_, top, row);
  // What is there is copied behind itself, so there are few calls however many tiles.
  for (std::int64_t done = 1; done < tiles_; done *= 2) {
    const std::int64_t more = std::min(done, tiles_ - done);
    backend().copy_rows(outer_, more * inner_, top, row, top + done * inner_, row);
  }
  return {};
}

void TileLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0] || bottoms[0]->count() == 0) return;
  backend().fill(bottoms[0]->count(), 0.0F, bottoms[0]->grad());
  const ChannelView tiles{{tiles_, inner_, 1}, {}};
  for (std::int64_t i = 0; i < outer_; ++i) {
    backend().sum_channels(tiles, nullptr, tops[0]->grad() + i * tiles_ * inner_, nullptr,
                           bottoms[0]->grad() + i * inner_);
  }
}

}  // namespace speedo
