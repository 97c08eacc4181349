#include "cpu/pooling/pooling_block.hpp"

#include <algorithm>
#include <string>
#include <vector>

#include "cpu/isa.hpp"
#include "cpu/pooling/pooling_block_kernels.hpp"
#include "cpu/pooling/pooling_codes.hpp"

namespace speedo::cpu {
namespace {

constexpr std::int64_t kCodePitch = 16;  // lanes of the widest vector
constexpr std::int64_t kPoolingFloats = 8192;

// What a kernel's axis points into.
struct Axis {
  Axis(std::int64_t src_size, std::int64_t dst_size, std::int64_t kernel, std::int64_t stride,
       std::int64_t pad)
      : view{src_size, dst_size, kernel, stride, pad, nullptr, nullptr} {
    const auto range = [](std::int64_t first, std::int64_t last) {
      return PoolingRange{static_cast<std::int32_t>(first), static_cast<std::int32_t>(last)};
    };
    for (std::int64_t i = 0; i < dst_size; ++i) {
      const std::int64_t start = view.start(i);
      const std::int64_t end = std::min(start + kernel, src_size + pad);
      elements.push_back(range(std::max<std::int64_t>(0, start), std::min(end, src_size)));
      sizes.push_back(end - start);
    }
    for (std::int64_t i = 0; i < src_size; ++i) {
      const std::int64_t before = i + pad - kernel;  // the last place too early for a window
      windows.push_back(
          range(before < 0 ? 0 : before / stride + 1, std::min(dst_size, (i + pad) / stride + 1)));
    }
    view.elements = elements.data();
    view.windows = windows.data();
  }

  PoolingAxis view;
  std::vector<PoolingRange> elements, windows;
  std::vector<std::int64_t> sizes;  // of windows, clipped to the padded image as Caffe does
};

class BlockPooling : public Pooling {
 protected:
  BlockPooling(const PoolingShape& shape, ThreadPool& pool)
      : pool_(pool),
        y_(shape.src_h, shape.dst_h, shape.kernel_h, shape.stride_h, shape.pad_h),
        x_(shape.src_w, shape.dst_w, shape.kernel_w, shape.stride_w, shape.pad_w),
        planes_(shape.batch * shape.layout.channels(shape.channels) / shape.layout.block),
        windows_{y_.view, x_.view, shape.layout.block,
                 (shape.layout.block + kCodePitch - 1) / kCodePitch * kCodePitch} {}

  // Calls body(first, last) on parts of the rows of all planes.
  template <class Body>
  void split_dst_rows(const Body& body) {
    const PoolingAxis& x = windows_.x;
    split(dst_rows(), x.dst * windows_.block * windows_.y.kernel * x.kernel, body);
  }
  template <class Body>
  void split_src_rows(const Body& body) {
    split(planes_ * windows_.y.src, windows_.x.src * windows_.block, body);
  }
  std::int64_t dst_rows() const { return planes_ * windows_.y.dst; }

  ThreadPool& pool_;
  const Axis y_, x_;
  const std::int64_t planes_;
  const BlockWindows windows_;

 private:
  template <class Body>
  void split(std::int64_t rows, std::int64_t row_floats, const Body& body) {
    pool_.split(rows, std::max<std::int64_t>(1, kPoolingFloats / row_floats),
                [&](std::int64_t first, std::int64_t last, int) { body(first, last); });
  }
};

template <class Code>
class BlockMaxPooling final : public BlockPooling {
 public:
  BlockMaxPooling(const PoolingShape& shape, ThreadPool& pool)
      : BlockPooling(shape, pool),
        trains_(shape.trains),
        winners_(trains_ ? dst_rows() * windows_.x.dst * windows_.code_pitch : 0) {}

  OperationInfo info() const override {
    return {.kernel = std::string(name(cpu_isa())), .workspace_bytes = winners_.bytes()};
  }

  Result<void> take_memory() override { return winners_.provide(); }

  void forward(const float* src, float* dst, float* /*mask*/) override {
    Code* codes = winners_.take();
    split_dst_rows([&](std::int64_t first, std::int64_t last) {
      if (!trains_) {
        block_max(windows_, first, last, src, dst);
      } else {
        block_max(windows_, first, last, src, dst, codes);
      }
    });
  }

  void backward(const float* /*src*/, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    const Code* codes = winners_.take();
    if constexpr (sizeof(Code) == 1) {
      if (windows_.y.kernel == windows_.y.stride && windows_.x.kernel == windows_.x.stride) {
        split_dst_rows([&](std::int64_t first, std::int64_t last) {
          block_max_grad_tiles(windows_, first, last, dst_grad, codes, src_grad);
        });
        return;
      }
    }
    split_src_rows([&](std::int64_t first, std::int64_t last) {
      block_max_grad(windows_, first, last, dst_grad, codes, src_grad);
    });
  }

 private:
  bool trains_;
  WinnerCodes<Code> winners_;
};

class BlockAveragePooling final : public BlockPooling {
 public:
  BlockAveragePooling(const PoolingShape& shape, ThreadPool& pool) : BlockPooling(shape, pool) {
    for (const std::int64_t height : y_.sizes) {
      for (const std::int64_t width : x_.sizes) {
        shares_.push_back(1.0F / static_cast<float>(height * width));
      }
    }
  }

  OperationInfo info() const override { return {.kernel = std::string(name(cpu_isa()))}; }

  void forward(const float* src, float* dst, float* /*mask*/) override {
    split_dst_rows([&](std::int64_t first, std::int64_t last) {
      block_average(windows_, first, last, shares_.data(), src, dst);
    });
  }

  void backward(const float* /*src*/, const float* /*dst*/, const float* dst_grad,
                float* src_grad) override {
    split_src_rows([&](std::int64_t first, std::int64_t last) {
      block_average_grad(windows_, first, last, shares_.data(), dst_grad, src_grad);
    });
  }

 private:
  std::vector<float> shares_;
};

}  // namespace

std::unique_ptr<Pooling> make_block_pooling(const PoolingShape& shape, ThreadPool& pool) {
  if (shape.method == PoolingShape::Method::kAverage) {
    return std::make_unique<BlockAveragePooling>(shape, pool);
  }
  if (WinnerCodes<std::uint8_t>::suffice(shape.kernel_h * shape.kernel_w)) {
    return std::make_unique<BlockMaxPooling<std::uint8_t>>(shape, pool);
  }
  return std::make_unique<BlockMaxPooling<std::uint32_t>>(shape, pool);
}

}  // namespace speedo::cpu
