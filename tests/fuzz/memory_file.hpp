#pragma once

#include <filesystem>
#include <string>

#include <sys/mman.h>
#include <unistd.h>

#include <speedo/base/assert.hpp>

#include "fuzz/fuzz_target.hpp"

namespace speedo::fuzz {

// A file in memory that has a path in this process.
class MemoryFile {
 public:
  explicit MemoryFile(Bytes content) : descriptor_(::memfd_create("fuzz", MFD_CLOEXEC)) {
    SPEEDO_ASSERT(descriptor_ >= 0);
    const auto size = static_cast<ssize_t>(content.size());
    SPEEDO_ASSERT(::write(descriptor_, content.data(), content.size()) == size);
  }
  explicit MemoryFile(const std::string& text)
      : MemoryFile(std::as_bytes(std::span(text.data(), text.size()))) {}
  ~MemoryFile() { ::close(descriptor_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;

  int descriptor() const { return descriptor_; }
  std::filesystem::path path() const {
    return "/proc/self/fd/" + std::to_string(descriptor_);
  }

 private:
  int descriptor_;
};

}  // namespace speedo::fuzz
