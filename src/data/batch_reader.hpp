#pragma once

#include <cstdint>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/shape.hpp>

namespace speedo {

// Computes batches of the endless stream one after the other; PrefetchFeed makes a BatchFeed of it.
// Thread safety: one thread at a time.
class BatchReader {
 public:
  using Tops = std::vector<std::vector<float>>;

  virtual ~BatchReader() = default;
  virtual const std::vector<Shape>& shapes() const = 0;  // one per top
  virtual std::uint64_t record_count() const = 0;        // records in one epoch
  // Fills the tops, sized as the shapes say. The same batch always gives the same values.
  // Error: kData, naming file and record.
  virtual Result<void> read(std::uint64_t batch, Tops& tops) = 0;
};

// The stream's record `offset` places behind the start of a batch, taken modulo the epoch.
// Requires: record_count > 0.
inline std::uint64_t record_at(std::uint64_t batch, std::uint64_t batch_size, std::uint64_t offset,
                               std::uint64_t record_count) {
  return ((batch % record_count) * batch_size % record_count + offset % record_count) %
         record_count;
}

}  // namespace speedo
