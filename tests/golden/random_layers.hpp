#pragma once

#include <speedo/base/result.hpp>
#include <speedo/core/net.hpp>

#include "data/hdf5/hdf5_file.hpp"
#include "golden/comparison.hpp"

namespace speedo::golden {

// Where Caffe drew random numbers, ours cannot be the same; but what they make can be checked:
// Dropout keeps or zeroes with one mask forward and backward, fillers have the range and the
// moments of Caffe's sample, and fillers without randomness agree exactly. Requires: forward() ran,
// and backward() if the case has one.
Result<void> check_random_layers(const Net& net, const caffe::NetParameter& message,
                                 const Hdf5Reader& io, Comparison& comparison);

}  // namespace speedo::golden
