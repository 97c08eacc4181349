#pragma once

#include <cstdint>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/shape.hpp>

#include "data/batch_tops.hpp"

namespace speedo {

// Computes batches of the endless stream, part by part; PrefetchFeed makes a BatchFeed of it.
// Thread safety: one thread at a time, but for read(), where takes_threads() says so.
class BatchReader {
 public:
  virtual ~BatchReader() = default;
  virtual const std::vector<Shape>& shapes() const = 0;  // one per top; where they vary, record 0's
  // Whether batches may have other shapes than these. Requires then: part_count() == 1.
  virtual bool shapes_vary() const { return false; }
  virtual std::uint64_t record_count() const = 0;        // records in one epoch
  // Each batch has so many parts, which follow each other along the stream.
  virtual std::int64_t part_count() const = 0;
  // Whether several threads may read at once: other parts of a batch, or other batches.
  virtual bool takes_threads() const = 0;
  // What a thread that reads takes beside the tops.
  virtual std::int64_t scratch_bytes() const = 0;
  // Fills what belongs to a part of tops that are sized as the shapes say; where they vary, it
  // gives them the batch's. The same part of a batch always gives the same values. Errors: kData,
  // naming file and the part's first bad record; kFull.
  virtual Result<void> read(std::uint64_t batch, std::int64_t part, BatchTops& tops) = 0;
};

// The stream's record `offset` places behind the start of a batch, taken modulo the epoch.
// Requires: record_count > 0.
inline std::uint64_t record_at(std::uint64_t batch, std::uint64_t batch_size, std::uint64_t offset,
                               std::uint64_t record_count) {
  return ((batch % record_count) * batch_size % record_count + offset % record_count) %
         record_count;
}

}  // namespace speedo
