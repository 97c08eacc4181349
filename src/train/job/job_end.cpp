#include <speedo/train/job_end.hpp>

#include "speedo.pb.h"

namespace speedo {

Result<void> put_job_end(BlobStore& store, std::uint64_t term) {
  record::JobEnd end;
  end.set_term(term);
  return store.put_blob(ended_key(), end.SerializeAsString());
}

Result<void> erase_job_end(BlobStore& store) { return store.erase_blob(ended_key()); }

Result<bool> is_job_over(BlobStore& store, std::uint64_t term) {
  const auto blob = store.get_blob(ended_key());
  if (!blob) {
    const ErrorCode code = blob.error().code;
    if (code == ErrorCode::kNotFound || code == ErrorCode::kCorrupt) return false;
    return blob.error();
  }
  record::JobEnd end;
  return end.ParseFromString(*blob) && end.has_term() && end.term() >= term;
}

}  // namespace speedo
