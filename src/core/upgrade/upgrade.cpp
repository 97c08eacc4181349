#include "core/upgrade/upgrade.hpp"

#include <utility>

#include <fmt/format.h>

#include "core/upgrade/upgrade_v0.hpp"
#include "core/upgrade/upgrade_v1.hpp"

namespace speedo {
namespace {

// The net's input fields become an Input layer in front. Without shapes they only name blobs, as in
// some weight files, and go.
Result<void> upgrade_inputs(caffe::NetParameter& net) {
  const bool has_shapes = net.input_shape_size() > 0;
  const int given = has_shapes ? net.input_shape_size() : net.input_dim_size();
  const int needed = has_shapes ? net.input_size() : 4 * net.input_size();
  if (given != 0 && given != needed) {
    return Error{ErrorCode::kConfig,
                 fmt::format("{} input blobs need {} {} fields, not {}", net.input_size(), needed,
                             has_shapes ? "input_shape" : "input_dim", given)};
  }
  if (given != 0) {
    caffe::LayerParameter input;
    input.set_name("input");
    input.set_type("Input");
    for (int i = 0; i < net.input_size(); ++i) {
      input.add_top(net.input(i));
      caffe::BlobShape& shape = *input.mutable_input_param()->add_shape();
      if (has_shapes) {
        shape = net.input_shape(i);
        continue;
      }
      for (int axis = 0; axis < 4; ++axis) {
        shape.add_dim(net.input_dim(4 * i + axis));
      }
    }
    *net.add_layer() = std::move(input);
    for (int i = net.layer_size() - 1; i > 0; --i) {
      net.mutable_layer()->SwapElements(i, i - 1);
    }
  }
  net.clear_input();
  net.clear_input_shape();
  net.clear_input_dim();
  return {};
}

// BatchNorm's three parameters are statistics that no solver may touch; old nets said so
// themselves, not always with both multipliers.
void freeze_batch_norm_statistics(caffe::NetParameter& net) {
  for (caffe::LayerParameter& layer : *net.mutable_layer()) {
    if (layer.type() != "BatchNorm" || layer.param_size() != 3) {
      continue;
    }
    for (caffe::ParamSpec& spec : *layer.mutable_param()) {
      spec.set_lr_mult(0.0F);
      spec.set_decay_mult(0.0F);
    }
  }
}

const char* type_name(caffe::SolverParameter::SolverType type) {
  switch (type) {
    case caffe::SolverParameter::SGD:
      return "SGD";
    case caffe::SolverParameter::NESTEROV:
      return "Nesterov";
    case caffe::SolverParameter::ADAGRAD:
      return "AdaGrad";
    case caffe::SolverParameter::RMSPROP:
      return "RMSProp";
    case caffe::SolverParameter::ADADELTA:
      return "AdaDelta";
    case caffe::SolverParameter::ADAM:
      return "Adam";
  }
  return "";
}

}  // namespace

Result<void> upgrade_net(caffe::NetParameter& net) {
  if (has_v0_layers(net)) {
    SPEEDO_TRY(upgrade_v0_to_v1(net));
  }
  move_transformation_fields(net);
  if (net.layers_size() > 0) {
    SPEEDO_TRY(upgrade_v1_to_current(net));
  }
  if (net.input_size() > 0) {
    SPEEDO_TRY(upgrade_inputs(net));
  }
  freeze_batch_norm_statistics(net);
  return {};
}

Result<void> upgrade_solver(caffe::SolverParameter& solver) {
  if (solver.has_solver_type()) {
    if (solver.has_type()) {
      return Error{ErrorCode::kConfig,
                   "solver has both type and the old solver_type; keep only type"};
    }
    solver.set_type(type_name(solver.solver_type()));
    solver.clear_solver_type();
  }
  if (solver.has_net_param()) {
    SPEEDO_TRY(upgrade_net(*solver.mutable_net_param()));
  }
  if (solver.has_train_net_param()) {
    SPEEDO_TRY(upgrade_net(*solver.mutable_train_net_param()));
  }
  for (caffe::NetParameter& net : *solver.mutable_test_net_param()) {
    SPEEDO_TRY(upgrade_net(net));
  }
  return {};
}

}  // namespace speedo
