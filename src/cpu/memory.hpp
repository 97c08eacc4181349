#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <speedo/backend/buffer.hpp>
#include <speedo/base/result.hpp>

namespace speedo::cpu {

// Zero-filled, 64-byte aligned memory. Error: kFull, with the bytes asked for.
Result<Buffer> allocate(std::size_t bytes);

// Working memory that all operations of one backend share: one block per thread and one for all of
// them, whose content lives only during an operation.
class Scratch {
 public:
  explicit Scratch(int threads) : blocks_(static_cast<std::size_t>(threads)) {}

  // Afterwards every thread's block has room for `floats` elements at least, and the common one for
  // `shared_floats`. Only counts; pointers given out before are void.
  void reserve(std::int64_t floats, std::int64_t shared_floats = 0);
  // What was reserved, in bytes.
  std::int64_t bytes() const;

  // A thread's block, taken when first asked for. To be asked for by its own thread, outside of
  // reserve(); the values are undefined. 64-byte aligned.
  float* block(int thread) { return take(blocks_[static_cast<std::size_t>(thread)], floats_); }
  // To be asked for by the thread that calls the backend.
  float* shared() { return take(shared_, shared_floats_); }

 private:
  static float* take(Buffer& block, std::int64_t floats);

  std::int64_t floats_ = 0, shared_floats_ = 0;
  std::vector<Buffer> blocks_;
  Buffer shared_;
};

}  // namespace speedo::cpu
