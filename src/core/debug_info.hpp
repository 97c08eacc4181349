#pragma once

#include <speedo/core/net.hpp>

namespace speedo {

// accumulate_gradients() that logs, as Caffe's debug_info does, the mean magnitude of every top and
// parameter after each layer's forward pass, of every gradient after its backward pass, and the
// norms of all parameters. Requires: NetOptions::keep_blobs, and not may_fuse.
Result<float> accumulate_with_debug_info(Net& net, int iter_size);

}  // namespace speedo
