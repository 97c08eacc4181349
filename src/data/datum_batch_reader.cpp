#include "data/datum_batch_reader.hpp"

#include <span>
#include <utility>

#include <fmt/format.h>

namespace speedo {

DatumBatchReader::DatumBatchReader(std::unique_ptr<DataSource> source, Transformer transformer,
                                   const Options& options)
    : source_(std::move(source)), transformer_(std::move(transformer)), options_(options) {}

Result<std::unique_ptr<BatchReader>> DatumBatchReader::create(std::unique_ptr<DataSource> source,
                                                              Transformer transformer,
                                                              const Options& options) {
  std::unique_ptr<DatumBatchReader> reader(
      new DatumBatchReader(std::move(source), std::move(transformer), options));
  Record& record = reader->record_;
  SPEEDO_TRY(reader->source_->read(0, record));
  reader->first_dims_ = {record.channels, record.height, record.width};
  SPEEDO_ASSIGN(reader->output_dims_, reader->transformer_.output_dims(reader->first_dims_));
  const ImageDims& dims = reader->output_dims_;
  SPEEDO_ASSIGN(Shape images,
                Shape::create({options.batch_size, dims.channels, dims.height, dims.width}));
  reader->shapes_.push_back(std::move(images));
  if (options.with_labels) reader->shapes_.push_back(Shape{options.batch_size});
  return std::unique_ptr<BatchReader>(std::move(reader));
}

// Images of several sizes are fine as long as the crop makes one size of them.
Result<void> DatumBatchReader::check_dims(std::uint64_t index) const {
  const ImageDims dims{record_.channels, record_.height, record_.width};
  if (dims == first_dims_) return {};
  if (const auto output = transformer_.output_dims(dims); output && *output == output_dims_) {
    return {};
  }
  return Error{
      ErrorCode::kData,
      fmt::format("record {} is {}x{}x{}, but record 0 is {}x{}x{}: set crop_size or convert "
                  "the images to one size",
                  index, dims.channels, dims.height, dims.width, first_dims_.channels,
                  first_dims_.height, first_dims_.width)};
}

Result<void> DatumBatchReader::read(std::uint64_t batch, Tops& tops) {
  const auto batch_size = static_cast<std::uint64_t>(options_.batch_size);
  const auto values = static_cast<std::size_t>(shapes_[0].count(1));
  for (std::uint64_t i = 0; i < batch_size; ++i) {
    const std::uint64_t index =
        record_at(batch, batch_size, options_.first_record + i, record_count());
    SPEEDO_TRY(source_->read(static_cast<std::int64_t>(index), record_));
    SPEEDO_TRY(check_dims(index));
    // By the place in the stream, so that the batch size does not change what a record becomes.
    Random random = Random::derive(options_.seed, {batch * batch_size + i});
    transformer_.apply(record_, random, std::span(tops[0]).subspan(i * values, values));
    if (options_.with_labels) tops[1][i] = static_cast<float>(record_.label);
  }
  return {};
}

}  // namespace speedo
