#include "sandbox/shared_window.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

namespace speedo {

namespace {

Error no_window(ErrorCode code, std::size_t bytes) {
  return {code, "no memory of " + std::to_string(bytes) +
                    " bytes to share with a helper process: " + std::strerror(errno)};
}

}  // namespace

Result<SharedWindow> SharedWindow::create(std::size_t bytes) {
  Descriptor descriptor(::memfd_create("speedo-window", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (descriptor.get() < 0) return no_window(ErrorCode::kUnsupported, bytes);
  constexpr int kFinal = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
  if (::ftruncate(descriptor.get(), static_cast<off_t>(bytes)) != 0 ||
      ::fcntl(descriptor.get(), F_ADD_SEALS, kFinal) != 0) {
    return no_window(ErrorCode::kFull, bytes);
  }
  return map(std::move(descriptor), bytes);
}

Result<SharedWindow> SharedWindow::map(Descriptor descriptor, std::size_t bytes) {
  void* const memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE,
                              descriptor.get(), 0);
  if (memory == MAP_FAILED) return no_window(ErrorCode::kFull, bytes);
  return SharedWindow({static_cast<std::byte*>(memory), bytes}, std::move(descriptor));
}

SharedWindow::SharedWindow(SharedWindow&& other) noexcept
    : bytes_(std::exchange(other.bytes_, {})), descriptor_(std::move(other.descriptor_)) {}

SharedWindow::~SharedWindow() {
  if (!bytes_.empty()) ::munmap(bytes_.data(), bytes_.size());
}

void SharedWindow::trim(std::size_t kept) {
  if (kept >= bytes_.size()) return;
  // Where the system cannot, they stay until the window is gone.
  static_cast<void>(::fallocate(descriptor_.get(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                static_cast<off_t>(kept),
                                static_cast<off_t>(bytes_.size() - kept)));
}

}  // namespace speedo
