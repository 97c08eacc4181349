#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>
#include <speedo/data/data_source.hpp>

#include "data/image/encoded_image.hpp"

namespace speedo {

// So many records of this many values are read together, so that an exchange with a parser process
// is for several: as many as are worth it, and as lie in a core's cache.
inline std::int64_t records_together(std::int64_t record_values) {
  constexpr std::int64_t kRecordsMax = 16, kValuesMax = std::int64_t{128} << 10U;
  return std::clamp<std::int64_t>(kValuesMax / std::max<std::int64_t>(record_values, 1), 1,
                                  kRecordsMax);
}
// The same of a batch, which threads divide among themselves.
inline std::int64_t records_together(std::int64_t record_values, std::int64_t batch_size) {
  constexpr std::int64_t kThreads = 8;
  return std::max<std::int64_t>(std::min(records_together(record_values), batch_size / kThreads),
                                1);
}

// Images are read together up to so many bytes of their files, whatever they become: pixels of all
// of them are in memory at once.
inline constexpr std::size_t kGroupFileBytes = std::size_t{512} << 10U;

// An image to be read with others: its file's name, which an error of decoding begins with, and the
// record that it becomes.
struct ImageRead {
  std::string name;
  Record* record = nullptr;
};
// Reads image i's file with `read_file(i)`, and decodes as many together as have small files, one
// at least. Before the next of them are read, `done(i, outcome)` is called for each: an error is
// that of `read_file`, or of decoding.
void read_images_together(
    std::span<const ImageRead> images, ImageColor color,
    const std::function<Result<std::shared_ptr<const std::string>>(std::size_t)>& read_file,
    const std::function<void(std::size_t, Result<void>)>& done);

// Reads a source's records in order, several together. Thread safety: one thread at a time.
class GroupedRecords {
 public:
  // Requires: `source` outlives it.
  explicit GroupedRecords(DataSource& source) : source_(source) {}

  // The next record, from the first on, and what came of reading it; until the next call. Requires:
  // there is one.
  RecordRead& next();

 private:
  void read_group();

  DataSource& source_;
  std::vector<Record> records_ = std::vector<Record>(1);
  std::vector<RecordRead> reads_;
  std::size_t given_ = 0;  // of `reads_`
  std::int64_t done_ = 0;  // of the source's records, with those of `reads_`
};

}  // namespace speedo
