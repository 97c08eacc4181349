#include "core/layers/spp.hpp"

#include <algorithm>

#include <fmt/format.h>

#include "caffe.pb.h"

namespace speedo {
namespace {

// A pyramid of more levels would have more windows on its ground than any image has rows.
constexpr std::uint32_t kLevelsMax = 16;

// Windows side by side without overlap, and how far the first reaches over the image's edge.
struct Windows {
  std::int64_t size, pad;
};

Windows windows_of(std::int64_t extent, std::int64_t count) {
  const std::int64_t size = (extent + count - 1) / count;
  return {size, (size * count - extent + 1) / 2};
}

Result<void> check_spp(const caffe::LayerParameter& layer, std::span<const Shape> bottoms) {
  const auto bad = [](std::string what) { return Error{ErrorCode::kConfig, std::move(what)}; };
  if (layer.bottom_size() != 1 || layer.top_size() != 1) {
    return bad(fmt::format("takes 1 bottom and makes 1 top, the prototxt gives {} and {}",
                           layer.bottom_size(), layer.top_size()));
  }
  const std::uint32_t levels = layer.spp_param().pyramid_height();
  if (levels < 1 || levels > kLevelsMax) {
    return bad(
        fmt::format("spp_param needs a pyramid_height from 1 to {}, not {}", kLevelsMax, levels));
  }
  const Shape& image = bottoms[0];
  if (image.axes() != 4 || image[2] < 1 || image[3] < 1) {
    return bad(fmt::format("needs a bottom of 4 axes (N x C x H x W) with pixels, not {}",
                           to_string(image)));
  }
  const std::int64_t most = std::int64_t{1} << (levels - 1U);
  if (most > std::min(image[2], image[3])) {
    return bad(
        fmt::format("a pyramid_height of {} cuts the image into {} x {} windows, but its "
                    "bottom has {} x {} pixels",
                    levels, most, most, image[2], image[3]));
  }
  return {};
}

caffe::PoolingParameter::PoolMethod pool_method(caffe::SPPParameter::PoolMethod method) {
  switch (method) {
    case caffe::SPPParameter::AVE:
      return caffe::PoolingParameter::AVE;
    case caffe::SPPParameter::STOCHASTIC:
      return caffe::PoolingParameter::STOCHASTIC;
    case caffe::SPPParameter::MAX:
      break;
  }
  return caffe::PoolingParameter::MAX;
}

caffe::LayerParameter& add_pooling(const caffe::LayerParameter& layer, const Shape& image,
                                   std::uint32_t level, caffe::NetParameter& graph) {
  caffe::LayerParameter& pool = *graph.add_layer();
  pool.set_name(fmt::format("pool{}", level));
  pool.set_type("Pooling");
  pool.add_bottom(layer.bottom(0));
  pool.add_top(pool.name());
  const Windows rows = windows_of(image[2], std::int64_t{1} << level);
  const Windows columns = windows_of(image[3], std::int64_t{1} << level);
  caffe::PoolingParameter& windows = *pool.mutable_pooling_param();
  windows.set_pool(pool_method(layer.spp_param().pool()));
  windows.set_kernel_h(static_cast<std::uint32_t>(rows.size));
  windows.set_kernel_w(static_cast<std::uint32_t>(columns.size));
  windows.set_stride_h(windows.kernel_h());
  windows.set_stride_w(windows.kernel_w());
  windows.set_pad_h(static_cast<std::uint32_t>(rows.pad));
  windows.set_pad_w(static_cast<std::uint32_t>(columns.pad));
  return pool;
}

}  // namespace

Result<void> expand_spp(const caffe::LayerParameter& layer, std::span<const Shape> bottoms,
                        caffe::NetParameter& graph) {
  SPEEDO_TRY(check_spp(layer, bottoms));
  const caffe::SPPParameter& options = layer.spp_param();
  if (options.pyramid_height() ==
      1) {  // As in Caffe, its top is the pooling layer's: N x C x 1 x 1.
    add_pooling(layer, bottoms[0], 0, graph).set_top(0, layer.top(0));
    return {};
  }
  caffe::LayerParameter all;
  all.set_name("concat");
  all.set_type("Concat");
  for (std::uint32_t level = 0; level < options.pyramid_height(); ++level) {
    const std::string pooled = add_pooling(layer, bottoms[0], level, graph).top(0);
    caffe::LayerParameter& flat = *graph.add_layer();
    flat.set_name(fmt::format("flatten{}", level));
    flat.set_type("Flatten");
    flat.add_bottom(pooled);
    flat.add_top(flat.name());
    all.add_bottom(flat.name());
  }
  all.add_top(layer.top(0));
  *graph.add_layer() = std::move(all);
  return {};
}

}  // namespace speedo
