#pragma once

#include <cstdint>

#include "cpu/convolution/convolution_kernels.hpp"
#include "cpu/onednn/onednn_pass.hpp"

namespace speedo::cpu::onednn {

// How threads divide a pass: by samples, and where those are too few for all of them, or for
// Winograd's method to pay in each, also by channels of the result: outputs, or those of src where
// its gradient is computed. At most as many units as threads; unit b * channel_parts + c is part b
// of the batch and part c of the channels.
struct WorkDivision {
  std::int64_t batch_parts = 1, channel_parts = 1;

  std::int64_t units() const { return batch_parts * channel_parts; }
};
WorkDivision divide_work(const ConvolutionShape& shape, ConvolutionPass pass,
                         CpuPrecision precision, int threads);
// By samples alone.
WorkDivision divide_samples(const ConvolutionShape& shape, int threads);

// The channels that a pass divides.
std::int64_t& divided_channels(ConvolutionShape& shape, ConvolutionPass pass);
// The convolution that one part of the channels is.
ConvolutionShape part_of(ConvolutionShape shape, ConvolutionPass pass, WorkDivision division);

}  // namespace speedo::cpu::onednn
