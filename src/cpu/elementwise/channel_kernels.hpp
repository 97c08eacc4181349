#pragma once

#include <cstdint>

namespace speedo::cpu {

// Rows of `block` floats, one after another, of which the first `used` columns count. Of one float
// a row all are of one channel; else each column is a channel.
struct ChannelRows {
  std::int64_t rows, block, used;
};

// Two sums for each channel.
struct ChannelSums {
  double *first, *second;
};

}  // namespace speedo::cpu
