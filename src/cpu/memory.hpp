#pragma once

#include <cstddef>
#include <vector>

#include <speedo/backend/buffer.hpp>
#include <speedo/base/result.hpp>

namespace speedo::cpu {

// Zero-filled, 64-byte aligned memory. Error: kFull, with the bytes asked for.
Result<Buffer> allocate(std::size_t bytes);

// Working memory that all operations of one backend share: one block per thread, whose content
// lives only during an operation.
class Scratch {
 public:
  explicit Scratch(int threads) : blocks_(static_cast<std::size_t>(threads)) {}
  // Afterwards every block has room for `floats` elements at least. Pointers given out before are
  // void.
  Result<void> reserve(std::int64_t floats);
  float* block(int thread) { return blocks_[static_cast<std::size_t>(thread)].as_floats(); }

 private:
  std::vector<Buffer> blocks_;
};

}  // namespace speedo::cpu
