#pragma once

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// Moves scale, mean_file, crop_size and mirror of V1 data layers to their transform_param.
void move_transformation_fields(caffe::NetParameter& net);

// Turns V1 layers (2014: `layers` with an enum type) into `layer`. Error: kConfig for a net that
// has both.
Result<void> upgrade_v1_to_current(caffe::NetParameter& net);

}  // namespace speedo
