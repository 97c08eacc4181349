#pragma once

#include <memory>
#include <string>

#include "cpu/convolution/convolution_kernels.hpp"
#include "cpu/gemm/gemm.hpp"
#include "cpu/isa.hpp"

namespace speedo::cpu {

// What the rest of this room sees of oneDNN; a build without it has none of its kernels
// (onednn_absent.cpp).

// Whether it was built in; uses_onednn() (cpu/isa.hpp) says whether it is asked.
bool has_onednn();
// "oneDNN 2.6.3", or empty without it.
std::string onednn_version();

// Holds oneDNN to an instruction set; false if it was built to take no limit, or has run before.
bool limit_onednn(CpuIsa isa);

// Whether oneDNN is used, and has vector kernels of its own (not reference loops) for the pass as
// it would run: with this many threads, in runs of so many samples.
bool onednn_serves(const ConvolutionShape& shape, ConvolutionPass pass, const Context& context);

// Requires: onednn_serves() of each pass that will be reserved.
std::unique_ptr<ConvolutionKernels> make_onednn_kernels(const ConvolutionShape& shape,
                                                        const Context& context);

// Contract as gemm() on the calling thread. Requires: has_onednn().
void onednn_gemm(const Backend::Gemm& product, GemmMatrix a, GemmMatrix b, GemmTarget c);

}  // namespace speedo::cpu
