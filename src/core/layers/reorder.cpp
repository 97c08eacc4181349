#include "core/layers/reorder.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>
#include <speedo/base/assert.hpp>

#include "caffe.pb.h"

namespace speedo {
namespace {

std::string to_text(Layout layout) {
  if (layout.is_plain()) return "plain";
  const char* const type = layout.type == ElementType::kFloat32 ? "" : " bfloat16";
  return fmt::format("blocks of {}{}", layout.block, type);
}

}  // namespace

bool same_order(const ArrayShape& shape, Layout a, Layout b) {
  if (a == b) return true;
  return shape.spatial == 1 && a.type == b.type && !a.is_padded(shape.channels) &&
         !b.is_padded(shape.channels);
}

ReorderLayer::ReorderLayer(const caffe::LayerParameter& parameter, Layout layout)
    : Layer(parameter), layout_(layout) {}

Result<void> ReorderLayer::reshape(Tensors bottoms, Tensors tops) {
  source_ = bottoms[0]->layout();
  is_free_ = same_order(bottoms[0]->array_shape(), source_, layout_);
  for (std::size_t i = 0; i < tops.size(); ++i) {
    SPEEDO_ASSERT(bottoms[i]->data_identity() == bottoms[0]->data_identity());
    tops[i]->reshape(bottoms[i]->shape());
    tops[i]->set_layout(layout_);
    if (is_free_) {
      tops[i]->share_data(*bottoms[i]);
      tops[i]->share_grad(*bottoms[i]);
    } else if (i > 0) {
      tops[i]->share_data(*tops[0]);
    }
  }
  return {};
}

OperationInfo ReorderLayer::info() const {
  OperationInfo info;
  info.kernel = fmt::format("{} to {}{}", to_text(source_), to_text(layout_),
                            is_free_ ? ", the same bytes" : "");
  return info;
}

Result<void> ReorderLayer::forward(Tensors bottoms, Tensors tops) {
  if (is_free_) return {};
  backend().reorder(bottoms[0]->array_shape(), bottoms[0]->data(), source_, tops[0]->data(),
                    layout_);
  return {};
}

void ReorderLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (is_free_) return;
  for (std::size_t i = 0; i < tops.size(); ++i) {
    if (!propagate[i]) continue;
    backend().reorder(tops[i]->array_shape(), tops[i]->grad(), layout_, bottoms[i]->grad(),
                      source_);
  }
}

}  // namespace speedo
