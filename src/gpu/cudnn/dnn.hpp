#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <speedo/backend/operations.hpp>
#include <speedo/base/result.hpp>

#include "gpu/convolution/convolution_pass.hpp"
#include "gpu/library/arithmetic.hpp"
#include "gpu/library/workspace.hpp"

namespace speedo::gpu {

struct DnnOptions {
  // The library multiplies float32 in TF32 at the lowest: kBfloat16 counts as kTf32 for arrays of
  // float32.
  Arithmetic arithmetic = Arithmetic::kFloat32;
  // The same bits in every run: only algorithms that promise it, chosen without a clock.
  bool is_deterministic = false;
  // Whether algorithms are tried on the device, with memory of their own for a moment.
  bool measures = true;
  std::size_t workspace_bytes_max = std::size_t{512} << 20U;  // of one pass
};

// The arrays of a pass, in the layouts of the shape and weight_layout(); what it computes is
// written, the other two are read.
struct DnnArrays {
  const float* src = nullptr;
  const float* weights = nullptr;
  const float* dst = nullptr;
};

// One pass of a convolution that is not transposed, planned: the algorithm is chosen.
class DnnPass {
 public:
  virtual ~DnnPass() = default;
  virtual std::string name() const = 0;
  virtual std::size_t workspace_bytes() const = 0;
  // How the weights of each output lie, plain or channels last, and of which type they are.
  virtual Layout weight_layout() const = 0;
  // Backward by the weights: whether it adds to what lies there, or writes over it.
  bool adds_to_weights() const { return weight_layout().type == ElementType::kFloat32; }
  // `memory`: of workspace_bytes(). Error: kInternal, what the library says.
  virtual Result<void> run(const DnnArrays& arrays, WorkMemory memory) = 0;
  // A forward pass with bias and rectification in one. False if the algorithm cannot do it, and
  // nothing was done.
  virtual Result<bool> run_with_relu(const DnnArrays& arrays, const float* bias,
                                     WorkMemory memory) = 0;
};

// The convolutions of one device, queued on one stream. Thread safety: one thread at a time.
class Dnn {
 public:
  virtual ~Dnn() = default;
  // The pass does not outlive this. Errors: kUnsupported, if there is no algorithm for it within
  // the working memory; kInternal, what the library says.
  virtual Result<std::unique_ptr<DnnPass>> plan(const ConvolutionShape& shape,
                                                ConvolutionPass pass) = 0;
  // How often an algorithm was chosen: once for each shape and pass.
  virtual std::int64_t searches() const = 0;
};

}  // namespace speedo::gpu
