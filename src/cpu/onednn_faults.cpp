#include "cpu/onednn_faults.hpp"

namespace speedo::cpu::onednn {
namespace {

// For the weights' gradients of strided kernels of one element, channels last, the AVX2 code (of
// 2.6.3, and still of 3.x) copies the positions that count to a scratchpad that has room for
// `channels` floats each, but begins to write them 8 floats apart. With fewer channels it writes
// behind the scratchpad.
bool overruns_scratchpad(const std::string& implementation, const ConvolutionShape& shape,
                         ConvolutionPass pass) {
  constexpr std::int64_t kStep = 8;
  return implementation == "jit_1x1:avx2" && pass == ConvolutionPass::kBackwardWeights &&
         !all_are(shape.stride, 1) && shape.channels < kStep;
}

// Windows as wide as the image, and 14 elements or more, have code of their own for AVX-512 (of
// 2.6.3). Its gradients are wrong by as much as they are large: by the weights where windows are 16
// rows or more, by the data where the windows' step from row to row is not 1.
bool errs_in_wide_windows(const std::string& implementation, const ConvolutionShape& shape,
                          ConvolutionPass pass) {
  constexpr std::int64_t kWide = 14;
  return implementation == "jit:avx512_core" && pass != ConvolutionPass::kForward &&
         shape.dst_size.back() == 1 && shape.kernel.back() >= kWide;
}

}  // namespace

bool has_fault(const std::string& implementation, const ConvolutionShape& shape,
               ConvolutionPass pass) {
  return overruns_scratchpad(implementation, shape, pass) ||
         errs_in_wide_windows(implementation, shape, pass);
}

}  // namespace speedo::cpu::onednn
