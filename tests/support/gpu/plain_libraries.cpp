#include "support/gpu/plain_libraries.hpp"

#include <algorithm>
#include <utility>

#include "support/reference/reference_backend.hpp"

namespace speedo::test {
namespace {

using gpu::BlasMatrix;
using gpu::BlasOperands;
using gpu::BlasProducts;
using gpu::ConvolutionPass;
using gpu::DnnArrays;
using gpu::WorkMemory;

// Element (row, column) of op(matrix) number `index`.
const float* element(const BlasMatrix& matrix, const float* first, std::int64_t index,
                     std::int64_t row, std::int64_t column) {
  if (matrix.transposed) std::swap(row, column);
  return first + index * matrix.step + column * matrix.stride + row;
}

void multiply_plainly(const BlasProducts& shape, const BlasOperands& on,
                      const Rounding& rounding) {
  for (std::int64_t index = 0; index < shape.count; ++index) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      for (std::int64_t i = 0; i < shape.m; ++i) {
        double sum = 0.0;
        for (std::int64_t k = 0; k < shape.k; ++k) {
          sum += double{rounding(*element(shape.a, on.a, index, i, k))} *
                 rounding(*element(shape.b, on.b, index, k, j));
        }
        float& d = *const_cast<float*>(element(shape.d, on.d, index, i, j));
        const double before = on.beta == 0.0F ? 0.0 : double{on.beta} * d;
        d = static_cast<float>(double{on.alpha} * sum + before);
        if (shape.epilogue != gpu::BlasEpilogue::kNone) d += on.bias[i];
        if (shape.epilogue == gpu::BlasEpilogue::kBiasRelu) d = std::max(0.0F, d);
      }
    }
  }
}

class PlainBlas final : public gpu::Blas {
 public:
  PlainBlas(RecordingDriver& driver, const Rounding& rounding)
      : driver_(driver), rounding_(rounding) {}
  std::size_t workspace_bytes() const override { return kWorkspace; }
  Result<void> multiply(gpu::StreamHandle stream, const BlasProducts& products,
                        const BlasOperands& operands, WorkMemory memory) override {
    if (memory.bytes < kWorkspace) driver_.log().report("product: too little working memory");
    const auto work = [=, rounding = rounding_] { multiply_plainly(products, operands, rounding); };
    std::vector<const void*> arrays{operands.a, operands.b, operands.d, memory.data};
    if (products.epilogue != gpu::BlasEpilogue::kNone) arrays.push_back(operands.bias);
    driver_.queue_call(stream, "product", arrays, work);
    return {};
  }
  std::int64_t plans() const override { return 0; }

 private:
  static constexpr std::size_t kWorkspace = 1024;
  RecordingDriver& driver_;
  const Rounding rounding_;
};

class PlainPass final : public gpu::DnnPass {
 public:
  PlainPass(RecordingDriver& driver, gpu::StreamHandle stream, ConvolutionPass pass,
            std::shared_ptr<Convolution> convolution)
      : driver_(driver), stream_(stream), pass_(pass), convolution_(std::move(convolution)) {}
  std::string name() const override { return "plain"; }
  std::size_t workspace_bytes() const override { return kWorkspace; }
  Layout weight_layout() const override { return {}; }
  Result<void> run(const DnnArrays& arrays, WorkMemory memory) override {
    if (memory.bytes < kWorkspace) driver_.log().report("convolution: too little working memory");
    driver_.queue_call(
        stream_, "convolution", {arrays.src, arrays.weights, arrays.dst, memory.data},
        [=, pass = pass_, convolution = convolution_] { run_now(pass, *convolution, arrays); });
    return {};
  }
  Result<bool> run_with_relu(const DnnArrays&, const float*, WorkMemory) override { return false; }

 private:
  static constexpr std::size_t kWorkspace = 512;

  static void run_now(ConvolutionPass pass, Convolution& convolution, const DnnArrays& arrays) {
    const auto written = [](const float* array) { return const_cast<float*>(array); };
    switch (pass) {
      case ConvolutionPass::kForward:
        return convolution.forward(arrays.src, arrays.weights, nullptr, written(arrays.dst));
      case ConvolutionPass::kBackwardData:
        return convolution.backward_data(arrays.dst, arrays.weights, written(arrays.src));
      case ConvolutionPass::kBackwardWeights:
        return convolution.backward_weights(arrays.src, arrays.dst, written(arrays.weights),
                                            nullptr);
    }
  }

  RecordingDriver& driver_;
  const gpu::StreamHandle stream_;
  const ConvolutionPass pass_;
  const std::shared_ptr<Convolution> convolution_;
};

class PlainDnn final : public gpu::Dnn {
 public:
  PlainDnn(RecordingDriver& driver, gpu::StreamHandle stream)
      : driver_(driver), stream_(stream), reference_(make_reference_backend()) {}
  Result<std::unique_ptr<gpu::DnnPass>> plan(const ConvolutionShape& shape,
                                             ConvolutionPass pass) override {
    ++searches_;
    ConvolutionShape linear = shape;
    linear.activation.reset();
    SPEEDO_ASSIGN(std::unique_ptr<Convolution> made, reference_->make_convolution(linear));
    return std::unique_ptr<gpu::DnnPass>(
        std::make_unique<PlainPass>(driver_, stream_, pass, std::move(made)));
  }
  std::int64_t searches() const override { return searches_; }

 private:
  RecordingDriver& driver_;
  const gpu::StreamHandle stream_;
  const std::unique_ptr<Backend> reference_;
  std::int64_t searches_ = 0;
};

}  // namespace

std::unique_ptr<gpu::Blas> make_plain_blas(RecordingDriver& driver, const Rounding& rounding) {
  return std::make_unique<PlainBlas>(driver, rounding);
}

std::unique_ptr<gpu::Dnn> make_plain_dnn(RecordingDriver& driver, gpu::StreamHandle stream) {
  return std::make_unique<PlainDnn>(driver, stream);
}

}  // namespace speedo::test
