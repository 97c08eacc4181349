#pragma once

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include <google/protobuf/text_format.h>
#include <speedo/core/batch_feed.hpp>
#include <speedo/data/data_source.hpp>

#include "caffe.pb.h"
#include "data/convert.hpp"
#include "data/memory_source.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {

inline void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

inline std::string read_bytes(const std::filesystem::path& path) {
  std::ifstream stream(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

// The four bytes that big32() (data/random_file.hpp) reads.
inline std::string big32_text(std::uint32_t value) {
  std::string text;
  for (int shift = 24; shift >= 0; shift -= 8) text += static_cast<char>(value >> shift & 0xFFU);
  return text;
}

// Record `index` of a made-up data set: every pixel says where it is.
inline Record numbered_record(std::int64_t index, std::int64_t channels = 2,
                              std::int64_t height = 3, std::int64_t width = 4) {
  Record record;
  record.channels = channels;
  record.height = height;
  record.width = width;
  record.label = index;
  for (std::int64_t i = 0; i < record.count(); ++i) {
    record.bytes.push_back(static_cast<std::uint8_t>((index * 31 + i) % 251));
  }
  return record;
}

inline std::vector<Record> numbered_records(std::int64_t count, std::int64_t channels = 2,
                                            std::int64_t height = 3, std::int64_t width = 4) {
  std::vector<Record> records;
  for (std::int64_t i = 0; i < count; ++i) {
    records.push_back(numbered_record(i, channels, height, width));
  }
  return records;
}

// 2500 numbered records, in their order.
inline void check_numbered(DataSource& source) {
  REQUIRE(source.size() == 2500);
  Record record;
  for (const std::int64_t index : {0, 999, 1000, 2499}) {
    REQUIRE(source.read(index, record));
    CHECK(record.label == index);
    CHECK(record.bytes == numbered_record(index).bytes);
  }
}

// Writes numbered records in the format asked for.
inline void write_numbered(const std::filesystem::path& path, RecordFormat format,
                           std::int64_t count) {
  MemorySource source(numbered_records(count));
  const auto written = convert(source, {.output = path, .format = format});
  REQUIRE(written);
}

inline caffe::LayerParameter layer_from(const std::string& text) {
  caffe::LayerParameter layer;
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &layer));
  return layer;
}

// The message of an error; fails if there is none.
template <class T>
std::string message_of(const Result<T>& result) {
  REQUIRE_FALSE(result);
  return result.error().message;
}

// Checks code and text of an error at once.
template <class T>
void check_error(const Result<T>& result, ErrorCode code, const std::string& text) {
  const std::string message = message_of(result);
  INFO(message);
  CHECK(result.error().code == code);
  CHECK(message.find(text) != std::string::npos);
  CHECK(message.find('\n') == std::string::npos);
}

}  // namespace speedo
