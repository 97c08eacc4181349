#pragma once

#include <memory>

#include <speedo/base/assert.hpp>
#include <speedo/base/result.hpp>
#include <speedo/data/data_source.hpp>

#include "caffe.pb.h"
#include "data/image/mean.hpp"

namespace speedo::fuzz {

// Reads the first records of a data set, and its last one.
inline void read_records(const Result<std::unique_ptr<DataSource>>& source) {
  if (!source) return;
  constexpr std::int64_t kRecords = 8;
  const std::int64_t size = (*source)->size();
  SPEEDO_ASSERT(size > 0);
  Record record;
  for (std::int64_t i = 0; i < size && i < kRecords; ++i) {
    if (!(*source)->read(i, record)) continue;
    const auto count = static_cast<std::size_t>(record.count());
    SPEEDO_ASSERT(record.bytes.size() + record.floats.size() == count);
  }
  static_cast<void>((*source)->read(size - 1, record));
  if (size <= kRecords) static_cast<void>(compute_mean(**source));
}

}  // namespace speedo::fuzz
