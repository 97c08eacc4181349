#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <speedo/backend/buffer.hpp>
#include <speedo/base/result.hpp>

namespace speedo::cpu {

// Zero-filled, 64-byte aligned memory. Error: kFull, with the bytes asked for.
Result<Buffer> allocate(std::size_t bytes);

// 1 PiB, so that sums of what several threads and operations need stay in range.
inline constexpr std::int64_t kScratchFloatsMax = std::int64_t{1} << 48U;

// Working memory that all operations of one backend share: one block for each part that work is
// divided into (ThreadPool::size()) and one for all of them, whose content lives only during an
// operation.
class Scratch {
 public:
  explicit Scratch(int parts) : blocks_(static_cast<std::size_t>(parts)) {}

  // Afterwards every part's block has room for `floats` elements at least, and the common one for
  // `shared_floats`. Only counts; pointers given out before are void. More than any machine has
  // counts as kScratchFloatsMax.
  void reserve(std::int64_t floats, std::int64_t shared_floats = 0);
  // What was reserved, in bytes.
  std::int64_t bytes() const;
  // Takes what was reserved. Error: kFull, with the bytes asked for.
  Result<void> provide();

  // A part's block, taken when first asked for if it was not provided; then it must fit. To be
  // asked for by the thread that works on the part, outside of reserve(); the values are undefined.
  // 64-byte aligned.
  float* block(int part) { return take(blocks_[static_cast<std::size_t>(part)], floats_); }
  // To be asked for by the thread that calls the backend.
  float* shared() { return take(shared_, shared_floats_); }

 private:
  static Result<void> ensure(Buffer& block, std::int64_t floats);
  static float* take(Buffer& block, std::int64_t floats);

  std::int64_t floats_ = 0, shared_floats_ = 0;
  std::vector<Buffer> blocks_;
  Buffer shared_;
};

}  // namespace speedo::cpu
