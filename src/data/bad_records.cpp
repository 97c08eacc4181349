#include "data/bad_records.hpp"

#include "base/log.hpp"

namespace speedo {

namespace {

// So many in a row are no accident: a folder that moved, a disk that failed.
constexpr std::uint64_t kMissedMax = 1000;

constexpr std::size_t kToldMax = 10;

// Whether it is the record's fault and not that of the program or the configuration.
bool is_of_record(ErrorCode code) {
  return code == ErrorCode::kData || code == ErrorCode::kNotFound || code == ErrorCode::kRefused ||
         code == ErrorCode::kUnsupported;
}

}  // namespace

BadRecords::~BadRecords() {
  if (!bad_.empty()) SPEEDO_WARN("Left out {} {} that could not be read", bad_.size(), what_);
}

bool BadRecords::pass_over(std::uint64_t index, const Error& error, std::uint64_t missed) {
  if (policy_ == OnBadRecord::kAbort || !is_of_record(error.code) || missed >= kMissedMax) {
    return false;
  }
  const std::lock_guard lock(mutex_);
  if (!bad_.insert(index).second) return true;
  if (meter_) ++meter_->skipped_records;
  if (bad_.size() <= kToldMax) SPEEDO_WARN("Left out: {}", error.message);
  if (bad_.size() == kToldMax) SPEEDO_WARN("Further {} that are left out are only counted", what_);
  return true;
}

}  // namespace speedo
