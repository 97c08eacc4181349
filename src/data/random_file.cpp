#include "data/random_file.hpp"

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/input_roots.hpp"

namespace speedo {

RandomFile::RandomFile(int fd, std::string name, std::uint64_t bytes)
    : fd_(fd), name_(std::move(name)), bytes_(bytes) {}

RandomFile::RandomFile(RandomFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), name_(std::move(other.name_)), bytes_(other.bytes_) {}

RandomFile& RandomFile::operator=(RandomFile&& other) noexcept {
  std::swap(fd_, other.fd_);
  std::swap(name_, other.name_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

RandomFile::~RandomFile() {
  if (fd_ >= 0) ::close(fd_);
}

Result<RandomFile> RandomFile::open(const std::filesystem::path& path) {
  SPEEDO_ASSIGN(Descriptor file, open_input(path));
  struct stat status {};
  if (::fstat(file.get(), &status) != 0 || !S_ISREG(status.st_mode)) {
    return Error{ErrorCode::kData, fmt::format("'{}' is not a regular file", path.string())};
  }
  return RandomFile(file.release(), path.string(), static_cast<std::uint64_t>(status.st_size));
}

Result<void> RandomFile::read(std::uint64_t offset, std::span<std::byte> target) const {
  while (!target.empty()) {
    const ssize_t count = ::pread(fd_, target.data(), target.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) {
      return Error{ErrorCode::kData,
                   fmt::format("'{}' {} at byte {}: it is truncated or the disk is failing", name_,
                               count == 0 ? "ends" : std::strerror(errno), offset)};
    }
    offset += static_cast<std::uint64_t>(count);
    target = target.subspan(static_cast<std::size_t>(count));
  }
  return {};
}

std::uint16_t little16(const std::byte* bytes) {
  return static_cast<std::uint16_t>(std::to_integer<unsigned>(bytes[0]) |
                                    std::to_integer<unsigned>(bytes[1]) << 8U);
}

std::uint32_t little32(const std::byte* bytes) {
  return little16(bytes) | static_cast<std::uint32_t>(little16(bytes + 2)) << 16U;
}

std::uint64_t little64(const std::byte* bytes) {
  return little32(bytes) | static_cast<std::uint64_t>(little32(bytes + 4)) << 32U;
}

std::uint32_t big32(const std::byte* bytes) { return __builtin_bswap32(little32(bytes)); }

}  // namespace speedo
