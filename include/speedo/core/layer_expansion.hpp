#pragma once

#include <functional>
#include <span>

#include <speedo/base/result.hpp>
#include <speedo/core/shape.hpp>

namespace caffe {
class LayerParameter;
class NetParameter;
}  // namespace caffe

namespace speedo {

// Writes into `graph` the layers that together do what `layer` says, in order of execution, for
// bottoms of these shapes. The net has them instead; weight files have the layer.
//
// Names: `layer` has its bottoms and tops as bottom0, bottom1, ..., top0, ...; by these names the
// graph reads every bottom and makes every top, which it does not read again. All other names of
// layers and blobs are the graph's own: the net puts the layer's name and a slash before them.
// Every parameter has a `param` whose name is its number among the parameters of `layer`, "0", "1",
// ... in the order of weight files; parameters of one number are shared. The rest of a `param`,
// loss weights, the phase and stored weights come from `layer`. Requires: no layer of the graph is
// to be expanded itself. Errors: kConfig and kUnsupported, without the name of the layer.
using ExpandLayer =
    std::function<Result<void>(const caffe::LayerParameter& layer, std::span<const Shape> bottoms,
                               caffe::NetParameter& graph)>;

}  // namespace speedo
