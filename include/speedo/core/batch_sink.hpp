#pragma once

#include <memory>
#include <span>

#include <speedo/base/result.hpp>
#include <speedo/core/shape.hpp>

namespace caffe {
class LayerParameter;
}

namespace speedo {

// One bottom of a batch, in plain order.
struct BatchPart {
  Shape shape;
  std::span<const float> values;
};

// Where a layer puts its bottoms, batch by batch. One that goes without finish() leaves nothing
// behind. Thread safety: one thread at a time.
class BatchSink {
 public:
  virtual ~BatchSink() = default;
  // One part a bottom; all hold as many items, maybe other ones than the last time. They are free
  // when the call returns. Errors: kConfig for shapes that do not fit, kCannotWrite.
  virtual Result<void> write(std::span<const BatchPart> parts) = 0;
  // Whatever was written is kept. Requires: nothing was finished before, nothing follows.
  // Error: kCannotWrite.
  virtual Result<void> finish() = 0;
};

// Opens what a layer names to write to. The core sees only this seam, so it is declared here;
// src/data implements it.
class SinkFactory {
 public:
  virtual ~SinkFactory() = default;
  // `shapes`: of the bottoms, the largest if they vary. Errors: kConfig for bad fields and shapes,
  // kCannotWrite.
  virtual Result<std::unique_ptr<BatchSink>> open(const caffe::LayerParameter& layer,
                                                  std::span<const Shape> shapes) = 0;
};

}  // namespace speedo
