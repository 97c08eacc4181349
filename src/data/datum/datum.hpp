#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

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

 private:
  ImageColor color_;
  std::unique_ptr<caffe::Datum> datum_;
};

// The record as Caffe's converters write it. Requires: bytes or floats of record.count().
void encode_datum(const Record& record, caffe::Datum& datum, std::string& bytes);

}  // namespace speedo
