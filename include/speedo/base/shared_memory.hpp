#pragma once

#include <cstddef>
#include <memory>

#include <speedo/base/result.hpp>

namespace speedo {

// Memory that other processes of this machine can map as well, once they are given its descriptor.
// It has no name: nobody else can open it, and nothing of it is left when the last process that has
// it is gone, however that ends. Its size is final, so that nobody can pull it away under others.
// Thread safety: none needed; who writes and reads what is for its users to settle.
class SharedMemory {
 public:
  // Zero-filled, page-aligned, and all of it there. Errors: kFull, kUnsupported.
  static Result<std::shared_ptr<SharedMemory>> create(std::size_t bytes);
  // What another process has created, to be read only. Takes the descriptor, in any case. Errors:
  // kMismatch for anything else than such memory, kFull.
  static Result<std::shared_ptr<const SharedMemory>> map(int descriptor);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::byte* data() { return data_; }
  const std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }
  // To be given to others; stays this object's. -1: the memory is another process' to give.
  int descriptor() const { return descriptor_; }

 private:
  SharedMemory(std::byte* data, std::size_t bytes, int descriptor)
      : data_(data), bytes_(bytes), descriptor_(descriptor) {}

  std::byte* const data_;
  const std::size_t bytes_;
  const int descriptor_;
};

}  // namespace speedo
