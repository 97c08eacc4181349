#include "support/gpu/plain_libraries.hpp"

#include <algorithm>
#include <utility>

#include "gpu/convolution/convolution_pass.hpp"
#include "support/gpu/stored_elements.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo::test {
namespace {

using gpu::BlasMatrix;
using gpu::BlasOperands;
using gpu::BlasProducts;
using gpu::ConvolutionPass;
using gpu::DnnArrays;
using gpu::WorkMemory;

// A value of op(matrix) number `index`.
class Element {
 public:
  Element(const BlasMatrix& matrix, const float* first, std::int64_t index, std::int64_t row,
          std::int64_t column)
      : type_(matrix.type) {
    if (matrix.transposed) std::swap(row, column);
    place_ = const_cast<float*>(
        element_at(first, index * matrix.step + column * matrix.stride + row, type_));
  }
  float value() const { return read_element(place_, type_); }
  void set(float value) const { write_element(value, place_, type_); }

 private:
  ElementType type_;
  float* place_;
};

void multiply_plainly(const BlasProducts& shape, const BlasOperands& on,
                      const Rounding& rounding) {
  for (std::int64_t index = 0; index < shape.count; ++index) {
    for (std::int64_t j = 0; j < shape.n; ++j) {
      for (std::int64_t i = 0; i < shape.m; ++i) {
        double sum = 0.0;
        for (std::int64_t k = 0; k < shape.k; ++k) {
          sum += double{rounding(Element(shape.a, on.a, index, i, k).value())} *
                 rounding(Element(shape.b, on.b, index, k, j).value());
        }
        const Element result(shape.d, on.d, index, i, j);
        const double before = on.beta == 0.0F ? 0.0 : double{on.beta} * result.value();
        auto d = static_cast<float>(double{on.alpha} * sum + before);
        if (shape.epilogue != gpu::BlasEpilogue::kNone) {
          d += Element({.type = shape.d.type}, on.bias, 0, i, 0).value();
        }
        if (shape.epilogue == gpu::BlasEpilogue::kBiasRelu) d = std::max(0.0F, d);
        result.set(d);
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
            const ConvolutionShape& shape, std::shared_ptr<Convolution> convolution)
      : driver_(driver),
        stream_(stream),
        pass_(pass),
        arrays_{gpu::src_array(shape).storage_count(shape.src_layout),
                gpu::weight_count(shape),
                gpu::dst_array(shape).storage_count(shape.dst_layout), shape.dst_layout.type},
        convolution_(std::move(convolution)) {}
  std::string name() const override { return "plain"; }
  std::size_t workspace_bytes() const override { return kWorkspace; }
  Layout weight_layout() const override { return {1, arrays_.type}; }
  Result<void> run(const DnnArrays& arrays, WorkMemory memory) override {
    if (memory.bytes < kWorkspace) driver_.log().report("convolution: too little working memory");
    driver_.queue_call(
        stream_, "convolution", {arrays.src, arrays.weights, arrays.dst, memory.data},
        [=, pass = pass_, all = arrays_, convolution = convolution_] {
          run_now(pass, all, *convolution, arrays);
        });
    return {};
  }
  Result<bool> run_with_relu(const DnnArrays&, const float*, WorkMemory) override { return false; }

 private:
  static constexpr std::size_t kWorkspace = 512;

  // How many elements each has, and of which type.
  struct Sizes {
    std::int64_t src, weights, dst;
    ElementType type;
  };

  // The reference knows floats. Gradients of the weights of another type are written, not added to.
  static void run_now(ConvolutionPass pass, const Sizes& all, Convolution& convolution,
                      const DnnArrays& arrays) {
    std::vector<float> src = read_elements(arrays.src, all.src, all.type);
    std::vector<float> weights = read_elements(arrays.weights, all.weights, all.type);
    std::vector<float> dst = read_elements(arrays.dst, all.dst, all.type);
    const auto write = [&](const std::vector<float>& values, const float* array) {
      write_elements(values, const_cast<float*>(array), all.type);
    };
    switch (pass) {
      case ConvolutionPass::kForward:
        convolution.forward(src.data(), weights.data(), nullptr, dst.data());
        return write(dst, arrays.dst);
      case ConvolutionPass::kBackwardData:
        convolution.backward_data(dst.data(), weights.data(), src.data());
        return write(src, arrays.src);
      case ConvolutionPass::kBackwardWeights:
        if (all.type != ElementType::kFloat32) weights.assign(weights.size(), 0.0F);
        convolution.backward_weights(src.data(), dst.data(), weights.data(), nullptr);
        return write(weights, arrays.weights);
    }
  }

  RecordingDriver& driver_;
  const gpu::StreamHandle stream_;
  const ConvolutionPass pass_;
  const Sizes arrays_;
  const std::shared_ptr<Convolution> convolution_;
};

class PlainDnn final : public gpu::Dnn {
 public:
  PlainDnn(RecordingDriver& driver, gpu::StreamHandle stream)
      : driver_(driver), stream_(stream), reference_(make_reference_backend()) {}
  Result<std::unique_ptr<gpu::DnnPass>> plan(const ConvolutionShape& shape,
                                             ConvolutionPass pass) override {
    if (shape.src_layout.type != shape.dst_layout.type) {
      return Error{ErrorCode::kUnsupported, "arrays of two types"};
    }
    ++searches_;
    ConvolutionShape linear = shape;
    linear.activation.reset();
    linear.src_layout.type = linear.dst_layout.type = ElementType::kFloat32;
    SPEEDO_ASSIGN(std::unique_ptr<Convolution> made, reference_->make_convolution(linear));
    return std::unique_ptr<gpu::DnnPass>(
        std::make_unique<PlainPass>(driver_, stream_, pass, shape, std::move(made)));
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
