#pragma once

#include "cpu/onednn/onednn_engine.hpp"

namespace speedo::cpu::onednn {

// Copies weights between plain order and a kernel's own, on the calling thread.
class WeightsReorder {
 public:
  enum class Mode { kCopy, kAdd };
  // `mode` kAdd: adds to the target.
  WeightsReorder(const dnnl::memory::desc& from, const dnnl::memory::desc& to, Mode mode)
      : reorder_(make_reorder(from, to, mode == Mode::kAdd)) {}
  void run(const float* from, float* to) { reorder_.run({from, to}); }

 private:
  BoundPrimitive reorder_;
};

}  // namespace speedo::cpu::onednn
