#pragma once

#include "caffe.pb.h"
#include "golden/comparison.hpp"

namespace speedo::golden {

struct Snapshot {
  caffe::NetParameter model;
  caffe::SolverState state;
};

// Blob by blob. `whole`: the reference also tells the layers' types, bottoms and tops (HDF5 does
// not).
void compare_snapshots(const Snapshot& ours, const Snapshot& reference, bool whole,
                       Comparison& comparison);

}  // namespace speedo::golden
