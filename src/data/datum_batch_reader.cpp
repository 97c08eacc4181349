#include "data/datum_batch_reader.hpp"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>

#include "data/record_group.hpp"

namespace speedo {

namespace {

// Values of a part: decoding them takes 30 microseconds at least, and threads meet for a fraction
// of one.
constexpr std::int64_t kPartValues = std::int64_t{32} << 10U;

// A record lies in memory as the file has it, as its message, and as pixels.
constexpr std::int64_t kRecordCopies = 3;

}  // namespace

DatumBatchReader::DatumBatchReader(std::unique_ptr<DataSource> source, Transformer transformer,
                                   const Options& options)
    : source_(std::move(source)),
      transformer_(std::move(transformer)),
      options_(options),
      bad_records_(options.on_bad_record, options.meter) {
  if (options.shuffle) order_.emplace(record_count(), options.seed);
}

Result<std::unique_ptr<BatchReader>> DatumBatchReader::create(std::unique_ptr<DataSource> source,
                                                              Transformer transformer,
                                                              const Options& options) {
  std::unique_ptr<DatumBatchReader> reader(
      new DatumBatchReader(std::move(source), std::move(transformer), options));
  Record record;
  SPEEDO_TRY(reader->or_next(0, reader->source_->read(0, record), record));
  reader->first_dims_ = {record.channels, record.height, record.width};
  SPEEDO_ASSIGN(reader->output_dims_, reader->transformer_.output_dims(reader->first_dims_));
  const std::size_t record_bytes = record.bytes.size() + sizeof(float) * record.floats.size();
  const ImageDims& dims = reader->output_dims_;
  SPEEDO_ASSIGN(Shape images,
                Shape::create({options.batch_size, dims.channels, dims.height, dims.width}));
  reader->group_records_ = records_together(images.count(1), options.batch_size);
  reader->part_records_ = std::max(kPartValues / images.count(1), reader->group_records_);
  reader->scratch_bytes_ =
      reader->group_records_ * kRecordCopies * static_cast<std::int64_t>(record_bytes);
  reader->shapes_.push_back(std::move(images));
  reader->shapes_vary_ = options.batch_size == 1 &&
                         !reader->transformer_.makes_one_size() && !reader->source_->has_one_size();
  if (options.with_labels) reader->shapes_.push_back(Shape{options.batch_size});
  return std::unique_ptr<BatchReader>(std::move(reader));
}

// The source's record that is record `i` of a batch.
std::uint64_t DatumBatchReader::index_of(std::uint64_t batch, std::uint64_t i) {
  const auto batch_size = static_cast<std::uint64_t>(options_.batch_size);
  const std::uint64_t place =
      record_at(batch, batch_size, options_.first_record + i, record_count());
  if (!order_) return place;
  const std::uint64_t position = batch * batch_size + options_.first_record + i;
  return (*order_->of(position / record_count()))[place];
}

Result<void> DatumBatchReader::or_next(std::uint64_t index, Result<void> outcome, Record& record) {
  for (std::uint64_t missed = 0; !outcome; ++missed) {
    const bool all = missed + 1 == record_count();
    const std::uint64_t tried = (index + missed) % record_count();
    if (all || !bad_records_.pass_over(tried, outcome.error(), missed)) return outcome;
    outcome = source_->read(static_cast<std::int64_t>((tried + 1) % record_count()), record);
  }
  return {};
}

// Images of several sizes are fine as long as the crop makes one size of them.
Result<void> DatumBatchReader::check_dims(const Record& record, std::uint64_t index) const {
  const ImageDims dims{record.channels, record.height, record.width};
  if (dims == first_dims_) return {};
  if (const auto output = transformer_.output_dims(dims); output && *output == output_dims_) {
    return {};
  }
  return Error{
      ErrorCode::kData,
      fmt::format("record {} is {}x{}x{}, but record 0 is {}x{}x{}: set crop_size, convert the "
                  "images to one size, or read them one by one (batch_size: 1)",
                  index, dims.channels, dims.height, dims.width, first_dims_.channels,
                  first_dims_.height, first_dims_.width)};
}

Result<void> DatumBatchReader::fit(const Record& record, std::uint64_t index,
                                   BatchTops& tops) const {
  if (record.channels != first_dims_.channels) {
    return Error{ErrorCode::kData, fmt::format("record {} has {} channels, but record 0 has {}",
                                               index, record.channels, first_dims_.channels)};
  }
  const auto wrong = [index](const Error& error) {
    return Error{ErrorCode::kData, fmt::format("record {}: {}", index, error.message)};
  };
  const auto dims = transformer_.output_dims({record.channels, record.height, record.width});
  if (!dims) return wrong(dims.error());
  std::vector<Shape> shapes = shapes_;
  auto image = Shape::create({1, dims->channels, dims->height, dims->width});
  if (!image) return wrong(image.error());
  shapes[0] = std::move(image).value();
  return tops.fit(shapes);
}

std::int64_t DatumBatchReader::part_count() const {
  return (options_.batch_size - 1) / part_records_ + 1;
}

Result<void> DatumBatchReader::read(std::uint64_t batch, std::int64_t part, BatchTops& tops) {
  SPEEDO_ASSERT(part >= 0 && part < part_count());
  const auto desk = desks_.take();
  const auto batch_size = static_cast<std::uint64_t>(options_.batch_size);
  const auto first = static_cast<std::uint64_t>(part * part_records_);
  const std::uint64_t end = std::min(first + static_cast<std::uint64_t>(part_records_), batch_size);
  const auto step = static_cast<std::uint64_t>(group_records_);
  for (std::uint64_t i = first; i < end; i += step) {
    SPEEDO_TRY(read_group(batch, i, std::min(i + step, end), *desk, tops));
  }
  return {};
}

Result<void> DatumBatchReader::read_group(std::uint64_t batch, std::uint64_t first,
                                          std::uint64_t end, Desk& desk, BatchTops& tops) {
  desk.records.resize(static_cast<std::size_t>(group_records_));
  desk.reads.clear();
  for (std::uint64_t i = first; i < end; ++i) {
    desk.reads.push_back(
        {static_cast<std::int64_t>(index_of(batch, i)), &desk.records[i - first]});
  }
  source_->read_group(desk.reads);
  const std::uint64_t batch_begin = batch * static_cast<std::uint64_t>(options_.batch_size);
  for (std::uint64_t i = first; i < end; ++i) {
    RecordRead& read = desk.reads[i - first];
    Record& record = *read.record;
    const auto index = static_cast<std::uint64_t>(read.index);
    SPEEDO_TRY(or_next(index, std::move(read.outcome), record));
    SPEEDO_TRY(shapes_vary_ ? fit(record, index, tops) : check_dims(record, index));
    // By the place in the stream, so that neither the batch size nor who reads before it changes
    // what a record becomes.
    Random random = Random::derive(options_.seed, {batch_begin + i});
    const auto values = static_cast<std::size_t>(tops.shapes()[0].count(1));
    transformer_.apply(record, random, tops[0].subspan(i * values, values));
    if (options_.with_labels) tops[1][i] = static_cast<float>(record.label);
  }
  return {};
}

}  // namespace speedo
