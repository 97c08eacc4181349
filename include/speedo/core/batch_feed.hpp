#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/core/phase.hpp>
#include <speedo/core/shape.hpp>

namespace caffe {
class LayerParameter;
}

namespace speedo {

class Device;

// Which batches a net reads next: `first` .. first+count-1, then it goes on at `next`, `next`+1,
// ... Batches are numbered along one endless stream: batch b of a data layer holds the stream's
// records b*batch_size .. (b+1)*batch_size-1, and record r of the stream is record r mod size of
// the source (shuffled anew each epoch, if asked). So a shard, a shuffle, a resumed run are
// arithmetic on b: the master hands out runs of batches, and every record of an epoch is trained by
// exactly one worker, however many there are.
struct BatchSpan {
  std::uint64_t first = 0;
  std::uint64_t count = UINT64_MAX;
  std::uint64_t next = 0;  // only used to read ahead

  // The batch of a step, which are counted from 0.
  std::uint64_t at(std::uint64_t step) const {
    return step < count ? first + step : next + (step - count);
  }
};

// Batches in host memory for the tops of one data layer, transformed and ready.
// Thread safety: one thread calls; the feed may own threads that read ahead.
class BatchFeed {
 public:
  virtual ~BatchFeed() = default;
  virtual const std::vector<Shape>& shapes() const = 0;  // one per top; where they vary, record 0's
  // Whether batches may have other shapes than these.
  virtual bool shapes_vary() const { return false; }
  // Those of one batch. Waits until it has been read, and leaves it to read(), but what that gave
  // last is not valid any more. Errors: those of read(); it is read again the next time.
  virtual Result<std::vector<Shape>> shapes_of(std::uint64_t /*batch*/) { return shapes(); }
  virtual std::uint64_t record_count() const = 0;        // records in one epoch
  // The batch's tops, in order; valid until the next call of read() or shapes_of(). The same index
  // always gives the same values, random mirror and crop included. Errors: kData, naming file and
  // record; kFull.
  virtual Result<std::vector<std::span<const float>>> read(std::uint64_t batch) = 0;
  // Asks for a batch to be read ahead. Not an error: a batch that is never read; requests beyond
  // the queue (kPrefetchBatches) are dropped.
  virtual void will_need(std::uint64_t batch) = 0;
  // Whether read(batch) would not have to wait.
  virtual bool is_ready(std::uint64_t /*batch*/) { return true; }
};

struct FeedOptions {
  Phase phase = Phase::kTrain;
  std::uint64_t seed = 0;              // of shuffles, mirrors and crops
  std::filesystem::path base;          // folder of the prototxt, for relative paths
  double start_fraction = 0.0;         // SpeeDO's offset mode: worker k of N starts at k/N
  int top_count = 0;
  // If not null, batches lie in its pinned memory, from where they can be copied without the host;
  // outlives the feed.
  Device* pinned_by = nullptr;
};

// What the feeds of a factory have come to, all together.
struct FeedTotals {
  std::chrono::nanoseconds waited{0};  // time that read() had to wait for batches not ready yet
  std::int64_t host_bytes = 0;         // what batches take in a steady state, of feeds alive
  std::int64_t skipped_records = 0;    // that could not be read, each counted once a feed
};

// Opens the data that a data layer names. The core sees only this seam, so it is declared here;
// src/data implements it.
class FeedFactory {
 public:
  virtual ~FeedFactory() = default;
  // Errors: kConfig for bad fields, kData/kNotFound for the source itself.
  virtual Result<std::unique_ptr<BatchFeed>> open(const caffe::LayerParameter& layer,
                                                  const FeedOptions& options) = 0;
  // Any thread may ask. Zeros from factories whose feeds neither wait nor keep batches.
  virtual FeedTotals totals() const { return {}; }
};

}  // namespace speedo
