// A build without oneDNN.

#include <speedo/base/assert.hpp>

#include "cpu/onednn/onednn.hpp"

namespace speedo::cpu {

bool has_onednn() { return false; }

std::string onednn_version() { return ""; }

bool limit_onednn(CpuIsa) { return true; }

bool onednn_serves(const ConvolutionShape&, ConvolutionPass, const Context&) { return false; }

std::unique_ptr<ConvolutionKernels> make_onednn_kernels(const ConvolutionShape&, const Context&) {
  return nullptr;
}

void onednn_gemm(const Backend::Gemm&, GemmMatrix, GemmMatrix, GemmTarget) { SPEEDO_ASSERT(false); }

}  // namespace speedo::cpu
