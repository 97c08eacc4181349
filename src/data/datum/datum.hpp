#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
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

// Reads and decodes Datums together, which costs less where they hold images (decode_images()).
// Thread safety: one thread at a time.
class DatumGroup {
 public:
  // The bytes of a source's record; until the next call.
  using ValueOf = std::function<Result<std::span<const std::byte>>(std::int64_t index)>;
  // What the decoder says of a record, with its place before it.
  using Fault = std::function<Error(std::int64_t index, const Error& error)>;

  explicit DatumGroup(ImageColor color) : color_(color) {}

  // An outcome that is an error is that of `value_of`, or the decoder's by `fault`.
  void read(std::span<RecordRead> reads, const ValueOf& value_of, const Fault& fault);

 private:
  // Decodes the bytes, which are copied, but for an image, which decode() decodes.
  void add(std::span<const std::byte> bytes, RecordRead& read);
  // Of all that were added. Those that failed have the decoder's errors as their outcomes.
  std::vector<RecordRead*> decode();

  const ImageColor color_;
  std::vector<std::unique_ptr<DatumDecoder>> decoders_;  // one for each image at least
  std::vector<ImageDecoding> images_;
  std::vector<RecordRead*> reads_;  // of the images
  std::vector<RecordRead*> failed_;
};

// The record as Caffe's converters write it. Requires: bytes or floats of record.count().
void encode_datum(const Record& record, caffe::Datum& datum, std::string& bytes);

}  // namespace speedo
