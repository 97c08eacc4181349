#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// Puts a Split layer behind every top that is read more than once, so that each blob has one reader
// and gradients add up. An explicit loss weight counts as a reader and moves to the split's first
// top. Names are Caffe's: layer BLOB_PRODUCER_INDEX_split, tops the same with _0, _1, ... Error:
// kConfig for a bottom that no earlier layer produces. `given`: blobs that are there before the
// first layer; the splits of those come first, and their producer is called "input". Adds to
// `changed_losses`, if not null, a line for each loss that so counts otherwise than the prototxt's
// loss weights say.
Result<void> insert_splits(caffe::NetParameter& net, const std::vector<std::string>& given = {},
                           std::vector<std::string>* changed_losses = nullptr);

}  // namespace speedo
