#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include <speedo/data/data_source.hpp>

#include "data/bad_records.hpp"
#include "data/batch_reader.hpp"
#include "data/epoch_order.hpp"
#include "data/image/transformer.hpp"
#include "data/scratch_pool.hpp"

namespace speedo {

// The stream of a Data or ImageData layer: records of a source in order, or in an order drawn for
// each epoch, from `first_record` on, transformed. Tops: images, and labels if two are asked for.
class DatumBatchReader : public BatchReader {
 public:
  struct Options {
    std::int64_t batch_size = 1;
    bool with_labels = true;
    std::uint64_t first_record = 0;  // of the source, at the stream's record 0
    std::uint64_t seed = 0;          // of mirrors, crops and orders
    bool shuffle = false;
    OnBadRecord on_bad_record = OnBadRecord::kAbort;
    std::shared_ptr<FeedMeter> meter = {};  // null: nothing is counted
  };
  // Reads record 0, which fixes the shape, unless batches of one record may have several: then each
  // has its own record's, by Caffe's rule, but as many channels. Errors: kData; kConfig if the
  // transformation does not fit.
  static Result<std::unique_ptr<BatchReader>> create(std::unique_ptr<DataSource> source,
                                                     Transformer transformer,
                                                     const Options& options);

  const std::vector<Shape>& shapes() const override { return shapes_; }
  bool shapes_vary() const override { return shapes_vary_; }
  std::uint64_t record_count() const override {
    return static_cast<std::uint64_t>(source_->size());
  }
  // A part is as many records as are worth a thread's turn, and an exchange with a parser process:
  // large images one by one.
  std::int64_t part_count() const override;
  bool takes_threads() const override { return true; }
  std::int64_t scratch_bytes() const override { return scratch_bytes_; }
  Result<void> read(std::uint64_t batch, std::int64_t part, BatchTops& tops) override;

 private:
  DatumBatchReader(std::unique_ptr<DataSource> source, Transformer transformer,
                   const Options& options);
  Result<void> check_dims(const Record& record, std::uint64_t index) const;
  Result<void> fit(const Record& record, std::uint64_t index, BatchTops& tops) const;
  std::uint64_t index_of(std::uint64_t batch, std::uint64_t i);
  // What one thread reads a group of records into.
  struct Desk {
    std::vector<Record> records;
    std::vector<RecordRead> reads;
  };
  // Records `first` to `end` of a batch.
  Result<void> read_group(std::uint64_t batch, std::uint64_t first, std::uint64_t end, Desk& desk,
                          BatchTops& tops);
  // A record that was read with this outcome, or with OnBadRecord::kSkip the first one behind it
  // that can be read.
  Result<void> or_next(std::uint64_t index, Result<void> outcome, Record& record);

  std::unique_ptr<DataSource> source_;
  Transformer transformer_;
  Options options_;
  ImageDims first_dims_, output_dims_;
  std::vector<Shape> shapes_;
  bool shapes_vary_ = false;
  std::int64_t part_records_ = 1, group_records_ = 1, scratch_bytes_ = 0;
  ScratchPool<Desk> desks_;
  BadRecords bad_records_;
  std::optional<EpochOrder> order_;
};

}  // namespace speedo
