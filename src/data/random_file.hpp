#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include <speedo/base/result.hpp>

namespace speedo {

// A file read at any offset with plain reads. Not mapped: a file that shrinks while it is read is
// an error here, where a mapping would end the process with SIGBUS. Thread safety: read() may be
// called from any thread.
class RandomFile {
 public:
  // Errors: kNotFound, kRefused (no permission), kData (a folder, or not readable).
  static Result<RandomFile> open(const std::filesystem::path& path);
  // The same, of what a gzip-compressed file unpacks to in memory; other files are opened as they
  // are. Error kData: it unpacks to more than `bytes_max`, or that is more than kUnpackedBytesMax.
  static Result<RandomFile> open_unpacked(const std::filesystem::path& path,
                                          std::uint64_t bytes_max);
  RandomFile(RandomFile&& other) noexcept;
  RandomFile& operator=(RandomFile&& other) noexcept;
  ~RandomFile();

  const std::string& name() const { return name_; }
  std::uint64_t bytes() const { return bytes_; }
  // True if `count` bytes lie behind `offset`, without overflow.
  bool holds(std::uint64_t offset, std::uint64_t count) const {
    return offset <= bytes_ && count <= bytes_ - offset;
  }
  // Fills `target`. Error: kData if the file ends before.
  Result<void> read(std::uint64_t offset, std::span<std::byte> target) const;

 private:
  RandomFile(int fd, std::string name, std::uint64_t bytes);

  int fd_ = -1;
  std::string name_;
  std::uint64_t bytes_ = 0;
};

// The first bytes of a file, unpacked. False if it is missing or shorter.
bool peek_unpacked(const std::filesystem::path& path, std::span<std::byte> target);

// Integers as they lie in files. Requires: enough bytes.
std::uint16_t little16(const std::byte* bytes);
std::uint32_t little32(const std::byte* bytes);
std::uint64_t little64(const std::byte* bytes);
std::uint32_t big32(const std::byte* bytes);

}  // namespace speedo
