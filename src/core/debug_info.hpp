#pragma once

#include <speedo/core/net.hpp>
#include <speedo/core/solver.hpp>

namespace speedo {

// run_passes() that logs, as Caffe's debug_info does, the mean magnitude of every top and
// parameter after each layer's forward pass, of every gradient after its backward pass, and the
// norms of all parameters. Requires: NetOptions::keep_blobs, and not may_fuse.
Result<Accumulated> run_passes_with_debug_info(Net& net, int iter_size);
// Net::forward() that logs its part of that. Requires the same.
Result<float> forward_with_debug_info(Net& net);

}  // namespace speedo
