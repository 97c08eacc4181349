#pragma once

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// Brings old forms of a net to the current one, as Caffe does on reading: V0 and V1 layers, input
// fields, transformation fields of data layers, BatchNorm parameters. A current net stays as it is.
// Errors: kConfig.
Result<void> upgrade_net(caffe::NetParameter& net);

// The enum solver_type becomes type, and nets written inside the solver are upgraded.
Result<void> upgrade_solver(caffe::SolverParameter& solver);

}  // namespace speedo
