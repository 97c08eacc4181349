#pragma once

#include <utility>
#include <vector>

#include <speedo/base/assert.hpp>
#include <speedo/data/data_source.hpp>

namespace speedo {

// Records held in memory: what a converter has parsed, or what a test made up.
class MemorySource : public DataSource {
 public:
  // Requires: records is not empty.
  explicit MemorySource(std::vector<Record> records) : records_(std::move(records)) {
    SPEEDO_ASSERT(!records_.empty());
  }

  std::int64_t size() const override { return static_cast<std::int64_t>(records_.size()); }

  Result<void> read(std::int64_t index, Record& record) override {
    SPEEDO_ASSERT(index >= 0 && index < size());
    record = records_[static_cast<std::size_t>(index)];
    return {};
  }

 private:
  std::vector<Record> records_;
};

}  // namespace speedo
