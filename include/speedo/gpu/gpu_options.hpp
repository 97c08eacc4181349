#pragma once

#include <functional>

#include <speedo/base/result.hpp>

namespace speedo {

// In what precision products are computed; weights and sums are float32. kTf32 rounds operands to
// 10 binary digits, kBfloat16 to 7, kFloat16 to 10 and to a range up to 65504. What passes between
// the convolutions of a net, and its gradients, are stored as bfloat16 with kBfloat16, else as
// float32.
enum class GpuPrecision { kFloat32, kTf32, kBfloat16, kFloat16 };

// What to do when a GPU fails in the middle: its memory is lost, and it computes nothing more for
// this process. Called once, on the thread that saw it.
using GpuFaultHandler = std::function<void(const Error&)>;

struct GpuOptions {
  int index = 0;  // as CUDA numbers the GPUs of this machine
  GpuPrecision precision = GpuPrecision::kFloat32;
  // The same bits in every run on the same kind of GPU: libraries take only algorithms that promise
  // it. Our own kernels always do.
  bool deterministic = false;
  // Whether update rules and means round a product and the sum that it goes into once, as the CPU's
  // loops do where processors have FMA (fuses_products() of cpu/isa.hpp), or each of them.
  bool fuses = true;
  bool tries = true;   // whether algorithms are chosen by trying them; else by heuristics
  // Whether this process gives up the GPU when the backend ends, as if it had never been used: what
  // CUDA keeps of it otherwise stays as long as the process. Requires: no other backend uses it.
  bool lets_go = false;
  bool graphs = true;  // whether training steps may be recorded and replayed as CUDA graphs
  GpuFaultHandler on_fault = {};  // empty: what returns a Result says it
};

}  // namespace speedo
