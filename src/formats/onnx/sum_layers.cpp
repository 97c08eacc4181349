// ArgMax, Embed, InnerProduct and Reduction.

#include <cstdint>

#include "formats/onnx/layer_writer.hpp"

namespace speedo::onnx_export {

namespace {

Attributes cast_to(::onnx::TensorProto::DataType type) { return {{"to", std::int64_t{type}}}; }

Result<void> write_inner_product(LayerWriter& layer) {
  const caffe::InnerProductParameter& options = layer.message().inner_product_param();
  const Shape& bottom = layer.bottom_shape(0);
  SPEEDO_ASSIGN(const int axis, bottom.canonical_axis(options.axis()));
  const Ints rows{bottom.count(0, axis), bottom.count(axis)};
  std::string x = layer.bottom(0);
  if (axis == 1 && bottom.axes() > 2) {
    x = layer.add("Flatten", {x}, {{"axis", std::int64_t{1}}});
  } else if (bottom.dims() != rows) {
    x = layer.reshape(x, rows);
  }
  Names inputs{x, layer.weight(0)};
  if (options.bias_term()) inputs.push_back(layer.weight(1));
  const std::string y =
      layer.add("Gemm", inputs, {{"transB", std::int64_t{options.transpose() ? 0 : 1}}});
  const Ints& dims = layer.top_shape(0).dims();
  layer.set_top(0, dims.size() == 2 ? y : layer.reshape(y, dims));
  return {};
}

Result<void> write_embed(LayerWriter& layer) {
  const std::string rows =
      layer.add("Cast", {layer.bottom(0)}, cast_to(::onnx::TensorProto::INT64));
  std::string y = layer.add("Gather", {layer.weight(0), rows}, {{"axis", std::int64_t{0}}});
  if (layer.message().embed_param().bias_term()) y = layer.add("Add", {y, layer.weight(1)});
  layer.set_top(0, y);
  return {};
}

// Over all axes from one on, as rows. Runtimes add up more exactly in ReduceSum than in ReduceL1
// and ReduceSumSquare.
Result<void> write_reduction(LayerWriter& layer) {
  const caffe::ReductionParameter& options = layer.message().reduction_param();
  const Shape& bottom = layer.bottom_shape(0);
  SPEEDO_ASSIGN(const int axis, bottom.canonical_axis(options.axis()));
  std::string rows = layer.reshape(layer.bottom(0), {bottom.count(0, axis), bottom.count(axis)});
  if (options.operation() == caffe::ReductionParameter::ASUM) rows = layer.add("Abs", {rows});
  if (options.operation() == caffe::ReductionParameter::SUMSQ) {
    rows = layer.add("Mul", {rows, rows});
  }
  const Attribute drop{"keepdims", std::int64_t{0}};
  std::string y;
  if (options.operation() == caffe::ReductionParameter::MEAN) {
    y = layer.add("ReduceMean", {rows}, {{"axes", Ints{1}}, drop});
  } else {
    y = layer.add("ReduceSum", {rows, layer.constants({1})}, {drop});
  }
  y = layer.times(y, options.coeff());
  const Ints& dims = layer.top_shape(0).dims();
  layer.set_top(0, dims.size() == 1 ? y : layer.reshape(y, dims));
  return {};
}

// The largest values along axis 1 of outer x places x inner, and where they are, as floats. Of
// equal ones the last comes first, as in Caffe: TopK takes the first, so places are turned round.
Names largest(LayerWriter& layer, const std::string& x, std::int64_t places, std::int64_t count) {
  const std::string turned =
      layer.add("Slice", {x, layer.constants({places - 1}), layer.constants({-places - 1}),
                          layer.constants({1}), layer.constants({-1})});
  const Names found = layer.graph().add_several(
      {"TopK", {turned, layer.constants({count})}, {{"axis", std::int64_t{1}}}}, 2);
  const std::string index = layer.add("Sub", {layer.constants({places - 1}), found[1]});
  return {found[0], layer.add("Cast", {index}, cast_to(::onnx::TensorProto::FLOAT))};
}

Result<void> write_arg_max(LayerWriter& layer) {
  const caffe::ArgMaxParameter& options = layer.message().argmax_param();
  const Shape& bottom = layer.bottom_shape(0);
  const bool has_axis = options.has_axis();
  SPEEDO_ASSIGN(const int axis, bottom.canonical_axis(has_axis ? options.axis() : 0));
  const Ints cube = has_axis ? Ints{bottom.count(0, axis), bottom[axis], bottom.count(axis + 1)}
                             : Ints{bottom[0], bottom.count(1), 1};
  const Names found =
      largest(layer, layer.reshape(layer.bottom(0), cube), cube[1], options.top_k());
  std::string y = options.out_max_val() ? found[0] : found[1];
  if (!has_axis && options.out_max_val()) {
    y = layer.add("Concat", {found[1], found[0]}, {{"axis", std::int64_t{1}}});
  }
  layer.set_top(0, layer.reshape(y, layer.top_shape(0).dims()));
  return {};
}

}  // namespace

const LayerTable& sum_layers() {
  static const LayerTable all = {{"ArgMax", write_arg_max},
                                 {"Embed", write_embed},
                                 {"InnerProduct", write_inner_product},
                                 {"Reduction", write_reduction}};
  return all;
}

}  // namespace speedo::onnx_export
