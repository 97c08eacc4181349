#include "data/datum/datum.hpp"

#include <utility>

#include <fmt/format.h>
#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>

#include "caffe.pb.h"

namespace speedo {

namespace {

// The number of values that the dims announce. The error names the dims.
Result<std::int64_t> value_count(const caffe::Datum& datum) {
  const std::int64_t plane = std::int64_t{datum.height()} * datum.width();
  if (datum.channels() < 1 || datum.height() < 1 || datum.width() < 1 ||
      plane > kBlobElementsMax / datum.channels()) {
    return Error{ErrorCode::kData, fmt::format("has impossible dims {}x{}x{}", datum.channels(),
                                               datum.height(), datum.width())};
  }
  return plane * datum.channels();
}

}  // namespace

DatumDecoder::DatumDecoder(ImageColor color)
    : color_(color), datum_(std::make_unique<caffe::Datum>()) {}

DatumDecoder::~DatumDecoder() = default;

Result<void> DatumDecoder::decode(std::span<const std::byte> bytes, Record& record) {
  SPEEDO_ASSIGN(const LeftImage image, unpack(bytes, record));
  return image ? decode_image(*image, color_, record) : Result<void>();
}

Result<DatumDecoder::LeftImage> DatumDecoder::unpack(std::span<const std::byte> bytes,
                                                     Record& record) {
  if (bytes.size() > kDatumfileRecordBytesMax ||
      !datum_->ParseFromArray(bytes.data(), static_cast<int>(bytes.size()))) {
    return Error{ErrorCode::kData, fmt::format("is not a Datum ({} bytes)", bytes.size())};
  }
  record.label = datum_->label();
  record.floats.clear();
  const std::string& data = datum_->data();
  if (datum_->encoded()) return LeftImage(std::as_bytes(std::span(data)));
  SPEEDO_ASSIGN(const std::int64_t count, value_count(*datum_));
  record.channels = datum_->channels();
  record.height = datum_->height();
  record.width = datum_->width();
  if (static_cast<std::int64_t>(data.size()) == count) {
    record.bytes.assign(data.begin(), data.end());
  } else if (data.empty() && datum_->float_data_size() == count) {
    record.bytes.clear();
    record.floats.assign(datum_->float_data().begin(), datum_->float_data().end());
  } else {
    return Error{ErrorCode::kData,
                 fmt::format("has {} bytes and {} floats, but dims {}x{}x{} need {} values",
                             data.size(), datum_->float_data_size(), record.channels, record.height,
                             record.width, count)};
  }
  return LeftImage();
}

void DatumGroup::read(std::span<RecordRead> reads, const ValueOf& value_of, const Fault& fault) {
  for (RecordRead& each : reads) {
    auto value = value_of(each.index);
    if (value) {
      each.outcome = {};
      add(*value, each);
    } else {
      each.outcome = std::move(value).error();
    }
  }
  for (RecordRead* failed : decode()) {
    failed->outcome = fault(failed->index, failed->outcome.error());
  }
}

void DatumGroup::add(std::span<const std::byte> bytes, RecordRead& read) {
  if (images_.size() == decoders_.size()) {
    decoders_.push_back(std::make_unique<DatumDecoder>(color_));
  }
  auto image = decoders_[images_.size()]->unpack(bytes, *read.record);
  if (!image) {
    read.outcome = std::move(image).error();
    failed_.push_back(&read);
  } else if (*image) {
    images_.push_back({**image, read.record});
    reads_.push_back(&read);
  }
}

std::vector<RecordRead*> DatumGroup::decode() {
  decode_images(images_, color_);
  for (std::size_t i = 0; i < images_.size(); ++i) {
    if (images_[i].outcome) continue;
    reads_[i]->outcome = std::move(images_[i].outcome);
    failed_.push_back(reads_[i]);
  }
  images_.clear();
  reads_.clear();
  return std::exchange(failed_, {});
}

void encode_datum(const Record& record, caffe::Datum& datum, std::string& bytes) {
  SPEEDO_ASSERT(record.bytes.empty() != record.floats.empty());
  datum.Clear();
  datum.set_channels(static_cast<int>(record.channels));
  datum.set_height(static_cast<int>(record.height));
  datum.set_width(static_cast<int>(record.width));
  datum.set_label(static_cast<int>(record.label));
  if (!record.bytes.empty()) {
    datum.set_data(record.bytes.data(), record.bytes.size());
  } else {
    datum.mutable_float_data()->Add(record.floats.begin(), record.floats.end());
  }
  datum.SerializeToString(&bytes);
}

}  // namespace speedo
