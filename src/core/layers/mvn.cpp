#include "core/layers/mvn.hpp"

#include <utility>

#include <fmt/format.h>

#include "caffe.pb.h"

namespace speedo {

Result<void> MvnLayer::setup(const LayerContext& context, Tensors bottoms, Tensors tops) {
  SPEEDO_TRY(Layer::setup(context, bottoms, tops));
  const auto& options = parameter_message().mvn_param();
  norm_.epsilon.reset();
  if (!options.normalize_variance()) return {};
  // Written so that a NaN is refused too.
  if (!(options.eps() >= 0.0F)) {
    return error(fmt::format("eps is {}, it must be at least 0", options.eps()));
  }
  norm_.epsilon = options.eps();
  return {};
}

Result<void> MvnLayer::reshape(Tensors bottoms, Tensors tops) {
  constexpr std::size_t kAxes = 4;
  std::vector<std::int64_t> dims = bottoms[0]->shape().dims();
  if (dims.size() > kAxes || dims.empty()) {
    return error(fmt::format("needs a bottom of 1 to 4 axes (N x C x H x W), it has {}: {}",
                             dims.size(), to_string(bottoms[0]->shape())));
  }
  if (tops[0] == bottoms[0] && dims.size() != kAxes) {
    return error(
        fmt::format("its top has 4 axes, so in place its bottom must have 4, it has {}: "
                    "{}; give its top a name of its own",
                    dims.size(), to_string(bottoms[0]->shape())));
  }
  dims.resize(kAxes, 1);
  auto top = Shape::create(std::move(dims));
  if (!top) return error(top.error().message);
  const int first = parameter_message().mvn_param().across_channels() ? 1 : 2;
  norm_.shape = {top->count(0, first), top->count(first)};
  if (tops[0] != bottoms[0]) tops[0]->reshape(*top);
  deviation_.reshape({norm_.shape.rows});
  return {};
}

Result<void> MvnLayer::prepare(Tensors /*bottoms*/, Tensors /*tops*/, bool /*trains*/) {
  return allocate(deviation_);
}

Result<void> MvnLayer::forward(Tensors bottoms, Tensors tops) {
  backend().normalize_rows(norm_, bottoms[0]->data(), tops[0]->data(), deviation_.data());
  return {};
}

void MvnLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  if (!propagate[0]) return;
  backend().normalize_rows_backward(norm_, tops[0]->data(), deviation_.data(), tops[0]->grad(),
                                    bottoms[0]->grad());
}

}  // namespace speedo
