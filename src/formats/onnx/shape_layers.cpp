// Layers that move elements and compute nothing: BatchReindex, Concat, Crop, Flatten, Parameter,
// Reshape, Silence, Slice, Split and Tile.

#include <cstdint>

#include "formats/onnx/layer_writer.hpp"

namespace speedo::onnx_export {

namespace {

Result<void> write_batch_reindex(LayerWriter& layer) {
  const std::string rows =
      layer.add("Cast", {layer.bottom(1)}, {{"to", std::int64_t{::onnx::TensorProto::INT64}}});
  layer.set_top(0, layer.add("Gather", {layer.bottom(0), rows}, {{"axis", std::int64_t{0}}}));
  return {};
}

Result<void> write_concat(LayerWriter& layer) {
  const caffe::ConcatParameter& options = layer.message().concat_param();
  const int given =
      options.has_concat_dim() ? static_cast<int>(options.concat_dim()) : options.axis();
  SPEEDO_ASSIGN(const int axis, layer.bottom_shape(0).canonical_axis(given));
  layer.set_top(0, layer.add("Concat", layer.bottoms(), {{"axis", std::int64_t{axis}}}));
  return {};
}

Result<void> write_slice(LayerWriter& layer) {
  if (layer.top_count() == 1) {
    layer.set_top(0, layer.bottom(0));
    return {};
  }
  const caffe::SliceParameter& options = layer.message().slice_param();
  const int given =
      options.has_slice_dim() ? static_cast<int>(options.slice_dim()) : options.axis();
  SPEEDO_ASSIGN(const int axis, layer.bottom_shape(0).canonical_axis(given));
  Ints sizes;
  for (int i = 0; i < layer.top_count(); ++i) sizes.push_back(layer.top_shape(i)[axis]);
  const Names parts = layer.graph().add_several(
      {"Split", {layer.bottom(0), layer.constants(sizes)}, {{"axis", std::int64_t{axis}}}},
      layer.top_count());
  for (int i = 0; i < layer.top_count(); ++i) layer.set_top(i, parts[static_cast<std::size_t>(i)]);
  return {};
}

Result<void> write_split(LayerWriter& layer) {
  for (int i = 0; i < layer.top_count(); ++i) layer.set_top(i, layer.bottom(0));
  return {};
}

Result<void> write_silence(LayerWriter& /*layer*/) { return {}; }

// The second bottom gives nothing but its size.
Result<void> write_crop(LayerWriter& layer) {
  const caffe::CropParameter& options = layer.message().crop_param();
  const Shape& bottom = layer.bottom_shape(0);
  SPEEDO_ASSIGN(const int first, bottom.canonical_axis(options.axis()));
  Ints begins, ends, axes;
  for (int axis = first; axis < bottom.axes(); ++axis) {
    std::int64_t offset = 0;
    if (options.offset_size() > 0) {
      offset = options.offset(options.offset_size() == 1 ? 0 : axis - first);
    }
    begins.push_back(offset);
    ends.push_back(offset + layer.top_shape(0)[axis]);
    axes.push_back(axis);
  }
  layer.set_top(0, layer.add("Slice", {layer.bottom(0), layer.constants(begins),
                                       layer.constants(ends), layer.constants(axes)}));
  return {};
}

// Flatten and Reshape: the shape is known.
Result<void> write_reshape(LayerWriter& layer) {
  layer.set_top(0, layer.reshape(layer.bottom(0), layer.top_shape(0).dims()));
  return {};
}

Result<void> write_tile(LayerWriter& layer) {
  const caffe::TileParameter& options = layer.message().tile_param();
  const Shape& bottom = layer.bottom_shape(0);
  SPEEDO_ASSIGN(const int axis, bottom.canonical_axis(options.axis()));
  Ints repeats(static_cast<std::size_t>(bottom.axes()), 1);
  repeats[static_cast<std::size_t>(axis)] = options.tiles();
  layer.set_top(0, layer.add("Tile", {layer.bottom(0), layer.constants(repeats)}));
  return {};
}

Result<void> write_parameter(LayerWriter& layer) {
  layer.set_top(0, layer.weight(0));
  return {};
}

Result<void> refuse_filter(LayerWriter& layer) {
  return layer.unsupported("how many items it lets through depends on their values");
}

}  // namespace

const LayerTable& shape_layers() {
  static const LayerTable all = {{"BatchReindex", write_batch_reindex},
                                 {"Concat", write_concat},
                                 {"Crop", write_crop},
                                 {"Filter", refuse_filter},
                                 {"Flatten", write_reshape},
                                 {"Parameter", write_parameter},
                                 {"Reshape", write_reshape},
                                 {"Silence", write_silence},
                                 {"Slice", write_slice},
                                 {"Split", write_split},
                                 {"Tile", write_tile}};
  return all;
}

}  // namespace speedo::onnx_export
