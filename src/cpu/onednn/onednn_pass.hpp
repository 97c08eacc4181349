#pragma once

#include <optional>
#include <string>
#include <vector>

#include "cpu/onednn/onednn_describe.hpp"
#include "cpu/onednn/onednn_engine.hpp"

namespace speedo::cpu::onednn {

// One pass of a convolution over a batch that is divided into parts, each for a thread, which runs
// oneDNN on its samples, all at once or a few at a time.
class PassKernels {
 public:
  // In float32 where oneDNN has no kernel of that precision. Nothing if it lacks one for any of the
  // runs, however short they are.
  static std::optional<PassKernels> plan(const ConvolutionShape& shape, ConvolutionPass pass,
                                         CpuPrecision precision, std::int64_t batch_parts);

  std::string implementation() const { return sizes_.front().description.implementation(); }
  const dnnl::memory::desc& weights() const { return sizes_.front().description.weights; }
  // What a thread needs for its largest run, in floats.
  std::int64_t scratch_floats() const;
  // Most samples of a run.
  std::int64_t samples_max() const { return plan_.samples; }
  // Most runs that one thread needs for its samples.
  std::int64_t runs_max() const { return runs_max_; }

  // Generates the code. To be called once, before place_weights() and run(). Throws dnnl::error.
  void make(int threads);

  // The runs of one thread for its samples [first, last).
  struct Run {
    std::int64_t first, samples;
  };
  template <class Body>
  void for_each_run(std::int64_t first, std::int64_t last, const Body& body) const {
    const ThreadPool::Division runs(last - first, 1, runs_of(last - first));
    for (std::int64_t i = 0; i < runs.parts; ++i) body(Run{first + runs.begin(i), runs.size(i)});
  }
  // The weights of all runs of a thread to come, unless they are the result. Not beside run().
  void place_weights(int thread, const float* weights);
  struct Arrays {
    const float* src;      // of the run's first sample, as is dst
    const float* weights;  // where they are the result, else null
    const float* bias;
    const float* dst;
    float* scratch;  // scratch_floats() of the thread's own
  };
  void run(int thread, std::int64_t samples, const Arrays& arrays);

 private:
  // What is needed for runs of so many samples. An operand that the kernel reads in another
  // precision is converted before each run.
  struct Size {
    PassPlan plan;
    PassDescription description;
    std::int64_t scratchpad_floats, src_floats, dst_floats;
    std::vector<BoundPrimitive> kernel, convert_src,
        convert_dst;  // by thread; empty: no conversion
  };

  PassKernels(const ConvolutionShape& shape, const PassPlan& longest)
      : shape_(shape), plan_(longest) {}

  std::int64_t runs_of(std::int64_t samples) const {
    return (samples + plan_.samples - 1) / plan_.samples;
  }
  // False if oneDNN has no kernel.
  bool shorten_runs();
  bool add_sizes(std::int64_t batch_parts);
  bool add_size(std::int64_t samples);
  void make(Size& size, int threads);

  ConvolutionShape shape_;
  PassPlan plan_;  // of a run of most samples
  std::int64_t runs_max_ = 1;
  std::vector<Size> sizes_;  // few
};

}  // namespace speedo::cpu::onednn
