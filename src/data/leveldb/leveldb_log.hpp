#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <speedo/base/result.hpp>

#include "data/random_file.hpp"

namespace speedo {

// So many bytes of a log's record lie at one place of the file.
struct LogFragment {
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
};

// Where something within a record begins, and how much of its fragment is left from there on.
using LogPlace = LogFragment;

// Reads the records of a LevelDB log, or of a MANIFEST, which has the same format, one by one.
class LeveldbLog {
 public:
  // Requires: the file outlives it.
  explicit LeveldbLog(const RandomFile& file) : file_(file) {}

  // The next record; false behind the last. Error: kData naming the byte, also for a record that
  // the end of the file cuts off.
  Result<bool> next();
  const std::vector<std::byte>& record() const { return record_; }
  // Where byte `position` of the record lies. Requires: position <= record().size(), and a record.
  LogPlace place_of(std::size_t position) const;

 private:
  struct Fragment;
  Error damaged(std::uint64_t offset, const char* what) const;
  Result<Fragment> read_fragment();

  const RandomFile& file_;
  std::uint64_t offset_ = 0;  // of what was not read yet
  std::vector<std::byte> record_;
  std::vector<LogFragment> fragments_;
  std::vector<std::size_t> ends_;  // of each of them in the record
};

// Bytes of a record that begin at `place`, however many fragments they lie in. Error: kData.
Result<void> read_log_bytes(const RandomFile& file, LogPlace place, std::span<std::byte> target);

}  // namespace speedo
