#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// One image and its label, raw: C x H x W planar bytes (BGR for colour, as Caffe stores them) or
// floats; exactly one of the two is filled.
struct Record {
  std::int64_t channels = 0, height = 0, width = 0;
  std::int64_t label = 0;
  std::vector<std::uint8_t> bytes;
  std::vector<float> floats;
  std::int64_t count() const { return channels * height * width; }
};

// A record that is wanted, and what came of it.
struct RecordRead {
  std::int64_t index = 0;
  Record* record = nullptr;
  Result<void> outcome = {};
};

// A data set with random access. Which record comes next is the caller's arithmetic.
// Thread safety: read() may be called from several threads at once, each with a record of its own.
class DataSource {
 public:
  virtual ~DataSource() = default;
  virtual std::int64_t size() const = 0;  // > 0
  // Whether all records have one height and width, whatever they are.
  virtual bool has_one_size() const { return false; }
  // Record `index`, reusing the record's memory. Requires: 0 <= index < size(). Error: kData with
  // file, index and key.
  virtual Result<void> read(std::int64_t index, Record& record) = 0;
  // The serialized Datum that the record is kept as, as it is; false: it is not kept as one.
  // Requires and error: as read(), but the Datum may be any bytes.
  virtual Result<bool> read_datum(std::int64_t, std::string&) { return false; }
  // read() of each. A source overrides it where several together cost less. Requires: each has a
  // record of its own.
  virtual void read_group(std::span<RecordRead> reads) {
    for (RecordRead& each : reads) each.outcome = read(each.index, *each.record);
  }
};

}  // namespace speedo
