#include "train/record_put.hpp"

#include <string>
#include <utility>

#include <speedo/base/assert.hpp>

#include "store/chunk_range.hpp"

namespace speedo {

RecordPut::RecordPut(Platform* behind) {
  if (behind != nullptr) errand_.emplace(*behind);
}

void RecordPut::begin(RecordStore& store, std::string_view key, const RecordInfo& info,
                      std::span<const float> values) {
  SPEEDO_ASSERT(!is_under_way());
  if (errand_) {
    errand_->begin(
        [&store, key = std::string(key), info, values] { return put(store, key, info, values); });
    return;
  }
  writer_ = store.write(key, info);
  write_all(*writer_, values);
}

bool RecordPut::is_under_way() const { return errand_ ? errand_->is_under_way() : !!writer_; }

bool RecordPut::is_sent() const {
  return errand_ ? errand_->is_done() : writer_ && writer_->is_sent();
}

Result<void> RecordPut::finish() {
  SPEEDO_ASSERT(is_under_way());
  if (errand_) return errand_->finish();
  const std::unique_ptr<RecordWriter> writer = std::move(writer_);
  return writer->finish();
}

}  // namespace speedo
