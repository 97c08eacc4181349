#include "data/record_group.hpp"

#include <speedo/base/assert.hpp>

namespace speedo {

RecordRead& GroupedRecords::next() {
  if (given_ == reads_.size()) read_group();
  return reads_[given_++];
}

// As many as the largest record of the group before suggests.
void GroupedRecords::read_group() {
  SPEEDO_ASSERT(done_ < source_.size());
  std::int64_t values = 0;
  for (const Record& record : records_) values = std::max(values, record.count());
  const std::int64_t together = values > 0 ? records_together(values) : 1;
  const std::int64_t count = std::min(together, source_.size() - done_);
  records_.resize(static_cast<std::size_t>(count));
  reads_.clear();
  for (Record& record : records_) reads_.push_back({done_++, &record});
  given_ = 0;
  source_.read_group(reads_);
}

}  // namespace speedo
