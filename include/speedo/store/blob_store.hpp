#pragma once

#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

namespace speedo {

// Small values of one job (up to a few MiB), each read and written whole. A blob and a record may
// have the same key. Errors, keys and thread safety as of the ParameterStore that this is part of.
class BlobStore {
 public:
  virtual ~BlobStore() = default;

  // Errors: kFull for a value that is too long; kSuperseded, see ParameterStore::fence().
  virtual Result<void> put_blob(std::string_view key, std::string_view value) = 0;
  // Errors: kNotFound, kCorrupt.
  virtual Result<std::string> get_blob(std::string_view key) = 0;
  // Not an error: there is none. kSuperseded: see ParameterStore::fence().
  virtual Result<void> erase_blob(std::string_view key) = 0;
};

// Keys of a job's blobs.
std::string job_key();    // solver and net text, see proto/speedo.proto
std::string probe_key();  // what a master writes now and then, to see that it can
std::string ended_key();  // the job is over, see train/job_end.hpp

}  // namespace speedo
