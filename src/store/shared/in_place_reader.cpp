#include "store/shared/in_place_reader.hpp"

#include <cstring>
#include <utility>

#include <speedo/base/assert.hpp>

#ifdef __SANITIZE_THREAD__
extern "C" {
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
}
#endif

namespace speedo {
namespace {

// The writer may write meanwhile: whether the copy counts is found out afterwards, which the thread
// sanitizer does not know.
void copy_unguarded(std::span<const float> values, std::span<float> target) {
#ifdef __SANITIZE_THREAD__
  AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
#endif
  std::memcpy(target.data(), values.data(), values.size_bytes());
#ifdef __SANITIZE_THREAD__
  AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
#endif
}

}  // namespace

template <class Reader>
InPlaceSource<Reader>::InPlaceSource(std::string key, std::shared_ptr<const SharedRecord> record,
                                     std::optional<SharedRecord::Version> version)
    : key_(std::move(key)),
      record_(std::move(record)),
      version_(std::move(version)),
      targets_(chunk_count(record_->shape().element_count)) {}

template <class Reader>
Result<void> InPlaceSource<Reader>::wait(std::size_t chunk) {
  const std::span<const float> values = in_place(chunk);
  if (!values.empty()) {
    SPEEDO_ASSERT(targets_[chunk].size() == values.size());
    copy_unguarded(values, targets_[chunk]);
  }
  return confirm(chunk);
}

template <class Reader>
std::span<const float> InPlaceSource<Reader>::in_place(std::size_t chunk) {
  if (!version_ || !record_->has(*version_, chunk)) return {};
  return record_->chunk(*version_, chunk);
}

template <class Reader>
std::uint64_t InPlaceSource<Reader>::checksum(std::size_t) const {
  SPEEDO_ASSERT(version_.has_value());
  return version_->generation;
}

template <class Reader>
Result<void> InPlaceSource<Reader>::confirm(std::size_t chunk) {
  if (version_ && record_->has(*version_, chunk)) return {};
  return Error{ErrorCode::kNotFound, "chunk " + std::to_string(chunk) + " of record '" + key_ +
                                         "' in shared memory is being overwritten"};
}

template class InPlaceSource<RecordReader>;
template class InPlaceSource<AheadReader>;

// What one look has found to be begun stays the version that is read: another one of the same
// number is not what was read before.
void InPlaceAheadReader::look(std::span<const std::size_t> chunks) {
  seen_.clear();
  if (!version_) version_ = record_->begun(expected_.version);
  for (const std::size_t chunk : chunks) {
    seen_.push_back(version_ && record_->has(*version_, chunk));
  }
}

}  // namespace speedo
