// Binary weight files of all generations, as they are read, and put into a net.
#include <memory>
#include <vector>

#include <speedo/base/assert.hpp>
#include <speedo/core/net.hpp>

#include "checkpoint/checkpoint_file.hpp"
#include "core/blob_proto.hpp"
#include "core/prototxt.hpp"
#include "core/weight_file.hpp"
#include "data/image/mean.hpp"
#include "fuzz/fuzz_input.hpp"
#include "fuzz/fuzz_target.hpp"
#include "fuzz/memory_file.hpp"
#include "fuzz/plan_net.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo::fuzz {
namespace {

Net& small_net() {
  constexpr const char* kText = R"(
    layer { name: "data" type: "Input" top: "data"
            input_param { shape { dim: 1 dim: 2 dim: 4 dim: 4 } } }
    layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
            convolution_param { num_output: 2 kernel_size: 2 } }
    layer { name: "ip" type: "InnerProduct" bottom: "conv" top: "ip"
            inner_product_param { num_output: 2 } })";
  static const std::unique_ptr<Backend> backend = make_reference_backend();
  static const std::unique_ptr<Net> net = [] {
    NetOptions options;
    options.backend = backend.get();
    return Net::create(parse_net_prototxt(kText, "small").value(), options).value();
  }();
  return *net;
}

SPEEDO_FUZZ_TARGET(caffemodel)(Bytes bytes) {
  Input input(bytes);
  const unsigned which = input.byte() % 4U;
  const MemoryFile file(input.left());
  if (which == 0) {
    const auto state = read_solverstate(file.path());
    if (state) is_finite(*state);
  }
  if (which == 1) static_cast<void>(read_mean(file.path()));
  if (which < 2) return;
  const auto model = read_caffemodel(file.path());
  if (!model) return;
  is_finite(*model);
  for (const caffe::LayerParameter& layer : model->layer()) {
    for (const caffe::BlobProto& blob : layer.blobs()) {
      const auto shape = shape_of(blob);
      if (shape) fits(blob, *shape);
      const auto filled = filled_shape_of(blob);
      if (!filled) continue;
      std::vector<float> values(static_cast<std::size_t>(filled->count()));
      SPEEDO_ASSERT(read_values(blob, values));
    }
  }
  static_cast<void>(small_net().copy_weights_from(*model));
  if (which == 3) plan_net(*model, 0);
}

}  // namespace
}  // namespace speedo::fuzz
