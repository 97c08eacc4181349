#pragma once

#include <string>

#include "cpu/convolution/convolution_kernels.hpp"

namespace speedo::cpu::onednn {

// Whether the kernel that oneDNN calls `implementation` computes the pass wrongly, or writes where
// it must not. Found by comparing its kernels alone with plain sums, on memory between guard pages.
bool has_fault(const std::string& implementation, const ConvolutionShape& shape,
               ConvolutionPass pass);

}  // namespace speedo::cpu::onednn
