#pragma once

#include <cstdint>
#include <functional>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include <speedo/backend/backend.hpp>

namespace speedo::bench {

// What a pass of an operation is compared with.
struct Ceilings {
  double gflops = 0.0;    // sgemm
  double gb_per_s = 0.0;  // memory's triad
};

inline double product(std::initializer_list<std::int64_t> factors) {
  double result = 1.0;
  for (const std::int64_t factor : factors) result *= static_cast<double>(factor);
  return result;
}

// Of square images: `size` is the side of what goes in.
struct ConvolutionSizes {
  std::int64_t batch, channels, size, outputs, kernel, stride = 1, pad = 0, groups = 1;
  bool transposed = false;
};
struct PoolingSizes {
  std::int64_t batch, channels, size, dst, kernel, stride, pad = 0;
};

// Times operations of the CPU backend and prints a line for each pass: milliseconds, rate, share of
// the ceiling. Arithmetic is compared with sgemm, the rest with memory bandwidth, where each array
// counts once for reading or for writing (small ones stay in a cache and can exceed it).
class LayerBench {
 public:
  // Runs only what has `filter` at the start of its name or of the name's second half.
  LayerBench(int threads, std::string filter);

  Backend& backend() { return *backend_; }
  void print_head();

  // Each in the plain layout and in those that the backend has for it. Spatial sizes are square.
  void convolution(const std::string& name, const ConvolutionSizes& sizes);
  void pooling(const std::string& name, PoolingShape::Method method, const PoolingSizes& sizes);
  void lrn(const std::string& name, LrnShape::Region region, std::int64_t batch,
           std::int64_t channels, std::int64_t size, std::int64_t window);
  void batch_norm(const std::string& name, std::int64_t batch, std::int64_t channels,
                  std::int64_t size, bool relu);
  void scale(const std::string& name, std::int64_t batch, std::int64_t channels, std::int64_t size);
  void reorder(const std::string& name, std::int64_t batch, std::int64_t channels,
               std::int64_t size);

  // These know no layout.
  void inner_product(const std::string& name, std::int64_t batch, std::int64_t inputs,
                     std::int64_t outputs);
  void relu(const std::string& name, std::int64_t count);
  void sum(const std::string& name, std::int64_t count);
  // The families of operations on each element.
  void vectors(const std::string& name, std::int64_t count);
  void dropout(const std::string& name, std::int64_t count);
  void concat(const std::string& name, std::int64_t batch, const std::vector<std::int64_t>& parts);
  void softmax_loss(const std::string& name, std::int64_t batch, std::int64_t classes);
  // Hinge loss and cross-entropy of sigmoids.
  void other_losses(const std::string& name, std::int64_t batch, std::int64_t classes);
  // Sums of rows, and their normalization.
  void rows(const std::string& name, std::int64_t rows, std::int64_t columns);
  // Windows of square images as matrices, and back.
  void unfold(const std::string& name, const ConvolutionSizes& sizes);
  void sgd(const std::string& name, std::int64_t count);
  // The rules of AdaptiveKind.
  void adaptive(const std::string& name, std::int64_t count);

 private:
  using Call = std::function<void()>;

  bool wanted(const std::string& name) const;
  // The shortest of several calls, after one that is not counted, in milliseconds.
  double best_ms(const Call& call) const;
  double now_ms() const;
  // Memory until free_arrays(), filled with values around zero.
  float* array(std::int64_t count);
  void free_arrays() { buffers_.clear(); }

  // What a pass did in its time: so many operations, or bytes.
  struct Work {
    double ms, count;
    bool is_flops;
  };
  void line(const std::string& name, const std::string& layout, const std::string& pass,
            const Work& work, const std::string& kernel);
  void flops(const std::string& name, const std::string& layout, const std::string& pass,
             double count, const std::string& kernel, const Call& call);
  void bytes(const std::string& name, const std::string& layout, const std::string& pass,
             double floats, const std::string& kernel, const Call& call);
  // The operation, or nothing after a line that says why.
  template <class Made>
  Made take(Result<Made> made, const std::string& name, const std::string& layout);

  int threads_;
  std::string filter_;
  std::unique_ptr<Backend> backend_;
  Ceilings ceilings_;
  std::vector<LayoutKind> kinds_;
  std::vector<Buffer> buffers_;
};

}  // namespace speedo::bench
