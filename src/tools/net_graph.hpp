#pragma once

#include <optional>
#include <string>

#include <speedo/core/phase.hpp>

namespace caffe {
class NetParameter;
}

namespace speedo {

struct NetGraphOptions {
  std::string direction = "LR";     // LR, RL, TB or BT: where the net runs to
  std::optional<Phase> phase = {};  // only the layers of this phase; none: all
  bool learning_rates = false;      // show each parameter's lr_mult
};

// A net in Graphviz' language: layers, colored by type, in-place ones green, and the blobs between
// them; what leads from a layer to a blob tells the number of outputs. Old forms of the net must be
// upgraded first.
std::string net_graph(const caffe::NetParameter& net, const NetGraphOptions& options);

}  // namespace speedo
