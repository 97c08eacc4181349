#include "core/layers/lstm_unit.hpp"

#include <fmt/format.h>

#include <speedo/backend/backend.hpp>

#include "core/layers/support.hpp"

namespace speedo {

Result<void> LstmUnitLayer::reshape(Tensors bottoms, Tensors tops) {
  const Shape& cells = bottoms[0]->shape();
  if (cells.axes() != 3 || cells[0] != 1) {
    return error(
        fmt::format("bottom 0 must be 1 x streams x cells, it is {}; one layer is one time step",
                    to_string(cells)));
  }
  shape_ = {cells[1], cells[2]};
  const Shape gates{1, shape_.streams, 4 * shape_.cells}, cont{1, shape_.streams};
  if (bottoms[1]->shape() != gates) {
    return error(fmt::format("bottom 1 must have 4 values for each of the {} cells, {}, it is {}",
                             shape_.cells, to_string(gates), to_string(bottoms[1]->shape())));
  }
  if (bottoms[2]->shape() != cont) {
    return error(
        fmt::format("bottom 2 must have one value for each of the {} streams, {}, it is {}",
                    shape_.streams, to_string(cont), to_string(bottoms[2]->shape())));
  }
  for (Tensor* top : tops) top->reshape(cells);
  gates_.reshape(gates);
  return {};
}

Result<void> LstmUnitLayer::prepare(Tensors /*bottoms*/, Tensors /*tops*/, bool /*trains*/) {
  return allocate(gates_);
}

std::int64_t LstmUnitLayer::workspace_bytes() const { return bytes_of(gates_); }

Result<void> LstmUnitLayer::forward(Tensors bottoms, Tensors tops) {
  backend().lstm_forward(shape_, {bottoms[2]->data(), bottoms[0]->data(), bottoms[1]->data(),
                                  gates_.data(), tops[0]->data(), tops[1]->data()});
  return {};
}

void LstmUnitLayer::backward(Tensors tops, const std::vector<bool>& propagate, Tensors bottoms) {
  backend().lstm_backward(
      shape_, {bottoms[0]->data(), gates_.data(), tops[0]->data(), tops[0]->grad(),
               tops[1]->grad(), propagate[0] ? bottoms[0]->grad() : nullptr,
               propagate[1] ? bottoms[1]->grad() : nullptr});
}

}  // namespace speedo
