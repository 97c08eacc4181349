#include <algorithm>
#include <cstring>
#include <memory>
#include <span>
#include <vector>

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/write_all.hpp"
#include "data/claimed_size.hpp"
#include "data/random_file.hpp"

namespace speedo {

namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20U;

using GzipHandle = std::unique_ptr<gzFile_s, decltype(&gzclose)>;

bool is_gzip(const RandomFile& file) {
  std::byte magic[2] = {};
  return file.holds(0, 2) && file.read(0, magic) && magic[0] == std::byte{0x1f} &&
         magic[1] == std::byte{0x8b};
}

// Empty: all is well. Else what went wrong.
std::string unpack(gzFile source, int target, std::uint64_t bytes_max) {
  std::vector<char> block(kBlockBytes);
  std::uint64_t total = 0;
  for (;;) {
    const int count = gzread(source, block.data(), static_cast<unsigned>(block.size()));
    int code = Z_OK;
    const char* text = gzerror(source, &code);
    // A file cut short reads as an early end, which zlib reports as a buffer error.
    if (count < 0 || code != Z_OK) return fmt::format("is a damaged gzip file ({})", text);
    if (count == 0) return {};
    total += static_cast<std::uint64_t>(count);
    if (total > bytes_max) {
      return fmt::format(
          "unpacks to more than {} bytes, the most that is expected of it; if it is "
          "right, unpack it (gunzip) and name the unpacked file",
          bytes_max);
    }
    if (!write_all(target,
                   std::as_bytes(std::span(block.data(), static_cast<std::size_t>(count))))) {
      return "cannot be unpacked: memory is full";
    }
  }
}

Result<void> check_announced(const std::string& name, std::uint64_t bytes) {
  if (bytes <= kUnpackedBytesMax) return {};
  return Error{ErrorCode::kData,
               fmt::format("'{}' announces {} bytes, but at most {} are unpacked in memory: unpack "
                           "it (gunzip) and name the unpacked file",
                           name, bytes, kUnpackedBytesMax)};
}

}  // namespace

// The unpacked bytes live in an anonymous file in memory, so that they too are read at any offset.
Result<RandomFile> RandomFile::open_unpacked(const std::filesystem::path& path,
                                             std::uint64_t bytes_max) {
  SPEEDO_ASSIGN(RandomFile packed, open(path));
  if (!is_gzip(packed)) return packed;
  SPEEDO_TRY(check_announced(path.string(), bytes_max));
  const GzipHandle source(gzopen(path.c_str(), "rb"), gzclose);
  const int target = ::memfd_create("speedo-unpacked", MFD_CLOEXEC);
  bytes_max = std::min(bytes_max, static_cast<std::uint64_t>(process_memory().bytes));
  const std::string fault =
      source && target >= 0 ? unpack(source.get(), target, bytes_max) : "cannot be unpacked";
  if (!fault.empty()) {
    if (target >= 0) ::close(target);
    return Error{ErrorCode::kData, fmt::format("'{}' {}", path.string(), fault)};
  }
  return RandomFile(target, path.string(),
                    static_cast<std::uint64_t>(::lseek(target, 0, SEEK_END)));
}

bool peek_unpacked(const std::filesystem::path& path, std::span<std::byte> target) {
  const GzipHandle source(gzopen(path.c_str(), "rb"), gzclose);
  return source && gzread(source.get(), target.data(), static_cast<unsigned>(target.size())) ==
                       static_cast<int>(target.size());
}

}  // namespace speedo
