#pragma once

#include <span>

#include <speedo/base/result.hpp>
#include <speedo/core/shape.hpp>

namespace caffe {
class LayerParameter;
class NetParameter;
}  // namespace caffe

namespace speedo {

// Spatial pyramid pooling (He et al. 2015) as an ExpandLayer: level l pools the image in 2^l x 2^l
// windows, and the levels follow one another in one row a sample.
Result<void> expand_spp(const caffe::LayerParameter& layer, std::span<const Shape> bottoms,
                        caffe::NetParameter& graph);

}  // namespace speedo
