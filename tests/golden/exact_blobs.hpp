#pragma once

#include <set>
#include <string>

#include <speedo/core/net.hpp>

namespace speedo::golden {

// How the values of a net's blobs may be compared with a reference.
struct BlobKinds {
  std::set<std::string> exact;   // copies and indices of inputs: not one bit may differ
  std::set<std::string> random;  // drawn, or computed from what was drawn
};
BlobKinds blob_kinds(const Net& net, const caffe::NetParameter& message);

// The layer of this name in the message the net was built from; null for inserted Split layers.
const caffe::LayerParameter* find_layer(const caffe::NetParameter& message,
                                        const std::string& name);

}  // namespace speedo::golden
