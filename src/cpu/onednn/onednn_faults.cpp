#include "cpu/onednn/onednn_faults.hpp"

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

// For the weights' gradients over three axes the AVX-512 code (of 2.6.3) errs where windows begin
// more than one step within the padding of the first axis and the step is not 1: by as much as the
// gradients are large, and it may write outside its memory. Not all such shapes are struck; all are
// left out.
bool errs_in_deep_padding(const std::string& implementation, const ConvolutionShape& shape,
                          ConvolutionPass pass) {
  return implementation == "jit:avx512_core" && pass == ConvolutionPass::kBackwardWeights &&
         shape.kernel.size() == 3 && shape.stride.front() != 1 &&
         shape.pad.front() > shape.stride.front();
}

}  // namespace

bool has_fault(const std::string& implementation, const ConvolutionShape& shape,
               ConvolutionPass pass) {
  return overruns_scratchpad(implementation, shape, pass) ||
         errs_in_wide_windows(implementation, shape, pass) ||
         errs_in_deep_padding(implementation, shape, pass);
}

}  // namespace speedo::cpu::onednn
