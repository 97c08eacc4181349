#include <speedo/base/shared_memory.hpp>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <string>

#include <speedo/base/assert.hpp>

#include "base/descriptor.hpp"

namespace speedo {
namespace {

// The size stays as it is: one that shrinks would kill whoever reads behind its new end.
constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

Error cannot_share(ErrorCode code, std::size_t bytes, const char* step) {
  return Error{code, "no shared memory of " + std::to_string(bytes) + " bytes: " + step + ": " +
                         std::strerror(errno)};
}

// Large pages where the system has them. All of them now: where memory is short, this is said here,
// and not by a signal later.
bool take_pages(void* memory, int descriptor, std::size_t bytes) {
  madvise(memory, bytes, MADV_HUGEPAGE);
#ifdef MADV_POPULATE_WRITE
  if (madvise(memory, bytes, MADV_POPULATE_WRITE) == 0) return true;
  if (errno != EINVAL) return false;
#endif
  errno = posix_fallocate(descriptor, 0, static_cast<off_t>(bytes));
  return errno == 0;
}

// Whoever reads finds all pages mapped already, where the system knows how. Only memory that has
// all its pages: looking at what another process left out would take memory for it.
void map_pages(void* memory, const struct stat& what) {
  madvise(memory, static_cast<std::size_t>(what.st_size), MADV_HUGEPAGE);
#ifdef MADV_POPULATE_READ
  constexpr off_t kBlockBytes = 512;
  if (what.st_blocks < what.st_size / kBlockBytes) return;
  madvise(memory, static_cast<std::size_t>(what.st_size), MADV_POPULATE_READ);
#endif
}

}  // namespace

Result<std::shared_ptr<SharedMemory>> SharedMemory::create(std::size_t bytes) {
  SPEEDO_ASSERT(bytes > 0);
  if (bytes > PTRDIFF_MAX) {
    errno = ENOMEM;
    return cannot_share(ErrorCode::kFull, bytes, "memfd_create");
  }
  const int descriptor = memfd_create("speedo", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (descriptor < 0) return cannot_share(ErrorCode::kUnsupported, bytes, "memfd_create");
  void* memory = MAP_FAILED;
  if (ftruncate(descriptor, static_cast<off_t>(bytes)) == 0 &&
      fcntl(descriptor, F_ADD_SEALS, kSeals) == 0) {
    memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  }
  if (memory == MAP_FAILED) {
    const Error error = cannot_share(ErrorCode::kFull, bytes, "mmap");
    close(descriptor);
    return error;
  }
  auto* const data = static_cast<std::byte*>(memory);
  std::unique_ptr<SharedMemory> made(new SharedMemory(data, bytes, descriptor));
  if (!take_pages(memory, descriptor, bytes)) {
    return cannot_share(ErrorCode::kFull, bytes, "taking its pages");
  }
  return std::shared_ptr<SharedMemory>(std::move(made));
}

Result<std::shared_ptr<const SharedMemory>> SharedMemory::map(int descriptor) {
  const Descriptor given(descriptor);
  struct stat what {};
  const int seals = fcntl(given.get(), F_GET_SEALS);
  const bool is_ours = fstat(given.get(), &what) == 0 && S_ISREG(what.st_mode) &&
                       what.st_size > 0 && seals >= 0 && (seals & kSeals) == kSeals;
  if (!is_ours) {
    return Error{ErrorCode::kMismatch,
                 "what another process gives to be shared is no memory of a final size"};
  }
  const auto bytes = static_cast<std::size_t>(what.st_size);
  void* const memory = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, given.get(), 0);
  if (memory == MAP_FAILED) return cannot_share(ErrorCode::kFull, bytes, "mmap");
  map_pages(memory, what);
  auto* const data = static_cast<std::byte*>(memory);
  std::unique_ptr<SharedMemory> made(new SharedMemory(data, bytes, -1));
  return std::shared_ptr<const SharedMemory>(std::move(made));
}

SharedMemory::~SharedMemory() {
  munmap(data_, bytes_);
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace speedo
