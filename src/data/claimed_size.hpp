#pragma once

#include <cstdint>
#include <span>
#include <string>

#include <speedo/base/result.hpp>

#include "base/memory_limit.hpp"

namespace speedo {

// A few bytes of a file can announce gigabytes. What is announced is compared with what the bytes
// of the file can hold at all, and with the memory that the process may have, before memory is
// taken for it. Neither refuses a file that is what it says.

// The most that deflate (PNG, gzip, HDF5) makes of one byte: 258 bytes take two bits at least.
inline constexpr std::uint64_t kDeflateRatioMax = 1032;

// HDF5's other filters keep only the header of a chunk whose values are all the same: 16 bytes for
// a chunk of the usual size, at most 1 MiB.
inline constexpr std::uint64_t kOtherFilterRatioMax = 65536;

// So much is believed without proof: it does no harm, and HDF5 files may announce values that were
// never written, which read as zeros.
inline constexpr std::uint64_t kHarmlessBytes = std::uint64_t{16} << 20U;

// What one gzip-compressed file unpacks to in memory, at most. One of more bytes is read unpacked
// from the disk.
inline constexpr std::uint64_t kUnpackedBytesMax = std::uint64_t{2} << 30U;

// The text of an HDF5 string: names of files, which the system limits to 4 KiB.
inline constexpr std::uint64_t kHdf5TextBytesMax = std::uint64_t{1} << 20U;

// Groups of an HDF5 model that are looked into, and parameters that are read: links can lead to the
// same ones again and again.
inline constexpr int kHdf5GroupsMax = 16384;
inline constexpr int kHdf5ParametersMax = 16384;

// a * b, or the largest number if that is more.
std::uint64_t saturating_product(std::uint64_t a, std::uint64_t b);

// What an array of these extents takes, likewise.
std::uint64_t array_bytes(std::span<const std::int64_t> extents, std::uint64_t element_bytes);

struct ClaimedSize {
  std::uint64_t bytes = 0;     // as announced
  std::uint64_t capacity = 0;  // the most that the bytes of the file can hold
};

// Error kData: "SUBJECT announces 8.00 GiB, but ...", with both sizes and the remedy.
Result<void> check_claim(const std::string& subject, const ClaimedSize& claim);

// The most memory that this process can have, looked up once.
const MemoryLimit& process_memory();

// Whether what is read as a whole fits the memory. Error kData: "SUBJECT takes 40 GiB of memory,
// but ...".
Result<void> check_memory(const std::string& subject, std::uint64_t bytes,
                          const MemoryLimit& limit = process_memory());

}  // namespace speedo
