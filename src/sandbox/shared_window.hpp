#pragma once

#include <cstddef>
#include <span>
#include <utility>

#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"

namespace speedo {

// Memory that a process and its helper write to, of a final size, which neither can shrink under
// the other. Pages are taken as they are touched. Thread safety: none.
class SharedWindow {
 public:
  // Zeros. Errors: kFull, kUnsupported.
  static Result<SharedWindow> create(std::size_t bytes);
  // The helper's view of what its owner created. Errors: kFull.
  static Result<SharedWindow> map(Descriptor descriptor, std::size_t bytes);
  SharedWindow(SharedWindow&& other) noexcept;
  SharedWindow& operator=(SharedWindow&&) = delete;
  ~SharedWindow();

  std::span<std::byte> bytes() const { return bytes_; }
  int descriptor() const { return descriptor_.get(); }
  // Gives back the pages behind the first `kept` bytes, which become zeros.
  void trim(std::size_t kept);

 private:
  SharedWindow(std::span<std::byte> bytes, Descriptor descriptor)
      : bytes_(bytes), descriptor_(std::move(descriptor)) {}

  std::span<std::byte> bytes_;
  Descriptor descriptor_;
};

}  // namespace speedo
