#pragma once

#include <cstdint>

#include <speedo/base/clock.hpp>

namespace speedo {

// The live line of commands that go through records once.
// Thread safety: one thread at a time.
class RecordProgress {
 public:
  explicit RecordProgress(std::int64_t total) : total_(total) {}
  void update(std::int64_t done);
  void finish();  // takes the line away

 private:
  std::int64_t total_;
  Instant shown_at_{};
};

}  // namespace speedo
