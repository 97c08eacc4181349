#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/data/data_source.hpp>

#include "data/image/encoded_image.hpp"

namespace caffe {
class Datum;
}

namespace speedo {

// Turns serialized Datums into records, reusing one message.
// Thread safety: one thread at a time.
class DatumDecoder {
 public:
  explicit DatumDecoder(ImageColor color);
  ~DatumDecoder();

  // Checks that C x H x W equals the number of values; PNG and JPEG data are decompressed. The
  // error's message says what is wrong; the caller puts file and record before it.
  Result<void> decode(std::span<const std::byte> bytes, Record& record);
  // decode(), but for an image: that is left to decode_image(), and kept here until the next call.
  using LeftImage = std::optional<std::span<const std::byte>>;
  Result<LeftImage> unpack(std::span<const std::byte> bytes, Record& record);

 private:
  ImageColor color_;
  std::unique_ptr<caffe::Datum> datum_;
};

// Decodes Datums together, which costs less where they hold images (decode_images()).
// Thread safety: one thread at a time.
class DatumGroup {
 public:
  explicit DatumGroup(ImageColor color) : color_(color) {}

  // DatumDecoder::decode() of the bytes, which are copied, some time before decode() returns.
  // Requires: `read` lasts until then.
  void add(std::span<const std::byte> bytes, RecordRead& read);
  // Of all that were added. Those that failed have the decoder's errors as their outcomes.
  std::vector<RecordRead*> decode();

 private:
  const ImageColor color_;
  std::vector<std::unique_ptr<DatumDecoder>> decoders_;  // one for each image at least
  std::vector<ImageDecoding> images_;
  std::vector<RecordRead*> reads_;  // of the images
  std::vector<RecordRead*> failed_;
};

// The record as Caffe's converters write it. Requires: bytes or floats of record.count().
void encode_datum(const Record& record, caffe::Datum& datum, std::string& bytes);

}  // namespace speedo
