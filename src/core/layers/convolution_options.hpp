#pragma once

#include <cstdint>
#include <vector>

#include <speedo/base/result.hpp>

namespace caffe {
class ConvolutionParameter;
}

namespace speedo {

// One value per spatial axis.
struct ConvolutionGeometry {
  std::vector<std::int64_t> kernel, stride, pad, dilation;
};

// Caffe's rules for what a prototxt may say: a repeated field holds one value for all axes or one
// per axis; the _h and _w forms are for two axes and exclude the repeated field. Error: kConfig,
// without the layer's name.
Result<ConvolutionGeometry> read_convolution_options(const caffe::ConvolutionParameter& options,
                                                     int spatial_axes);

}  // namespace speedo
