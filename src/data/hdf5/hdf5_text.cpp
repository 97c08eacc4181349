// element := LENGTH(4) ADDRESS(a) INDEX(4)           in the place of the dataset's value
// heap    := "GCOL" 1 0 0 0 SIZE(s) object*          at that address, of SIZE bytes together
// object  := INDEX(2) USES(2) 0 0 0 0 BYTES(s) byte*  up to a multiple of 8; INDEX 0: free space
//
// All numbers are little-endian; a and s are the file's sizes of addresses and lengths, and
// addresses count from behind the user block. HDF5 File Format Specification 3.0, III.E and
// IV.A.2.d (variable-length types).

#include "data/hdf5/hdf5_text.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <optional>

#include <fmt/format.h>
#include <unistd.h>

#include "data/claimed_size.hpp"
#include "data/hdf5/hdf5_handle.hpp"

namespace speedo {

namespace {

constexpr std::size_t kNumberBytesMax = 8;
constexpr std::size_t kObjectAlignment = 8;

Error bad_text(const std::string& what) { return {ErrorCode::kData, what}; }
Error damaged_text() {
  return bad_text("is a string of variable length whose bytes are not where it says: the file is "
                  "damaged");
}

// The open file's bytes.
struct RawFile {
  int descriptor = -1;
  std::uint64_t first = 0;  // address 0
  std::size_t address_bytes = 0, size_bytes = 0;

  bool read(std::uint64_t address, void* target, std::size_t count) const {
    std::uint64_t at = 0;
    if (__builtin_add_overflow(first, address, &at) || at > INT64_MAX - count) return false;
    char* to = static_cast<char*>(target);
    while (count > 0) {
      const ssize_t got = ::pread(descriptor, to, count, static_cast<off_t>(at));
      if (got <= 0) return false;
      to += got;
      at += static_cast<std::uint64_t>(got);
      count -= static_cast<std::size_t>(got);
    }
    return true;
  }
};

std::uint64_t number_of(const std::uint8_t* bytes, std::size_t count) {
  std::uint64_t number = 0;
  for (std::size_t i = count; i > 0; --i) number = number << 8U | bytes[i - 1];
  return number;
}

std::optional<RawFile> raw_file(hid_t file) {
  const Hdf5Handle creation(H5Fget_create_plist(file), H5Pclose);
  RawFile raw;
  hsize_t user_block = 0;
  void* handle = nullptr;
  if (!creation || H5Pget_userblock(creation.get(), &user_block) < 0 ||
      H5Pget_sizes(creation.get(), &raw.address_bytes, &raw.size_bytes) < 0 ||
      H5Fget_vfd_handle(file, H5P_DEFAULT, &handle) < 0 || handle == nullptr) {
    return std::nullopt;
  }
  if (raw.address_bytes > kNumberBytesMax || raw.size_bytes > kNumberBytesMax) return std::nullopt;
  raw.descriptor = *static_cast<int*>(handle);
  raw.first = user_block;
  return raw;
}

struct TextPlace {
  std::uint64_t length = 0, heap = 0, index = 0;
};

std::optional<TextPlace> read_place(const RawFile& raw, haddr_t offset) {
  constexpr std::size_t kLengthBytes = 4, kIndexBytes = 4;
  std::array<std::uint8_t, kLengthBytes + kNumberBytesMax + kIndexBytes> element{};
  // The library counts the user block in.
  if (!raw.read(offset - raw.first, element.data(),
                kLengthBytes + raw.address_bytes + kIndexBytes)) {
    return std::nullopt;
  }
  const std::uint8_t* const address = element.data() + kLengthBytes;
  return TextPlace{number_of(element.data(), kLengthBytes), number_of(address, raw.address_bytes),
                   number_of(address + raw.address_bytes, kIndexBytes)};
}

// The bytes of an object, of which `length` are wanted.
std::optional<std::string> read_object(const RawFile& raw, const TextPlace& place) {
  const std::size_t head_bytes = 8 + raw.size_bytes;
  std::array<std::uint8_t, 8 + kNumberBytesMax> head{};
  if (!raw.read(place.heap, head.data(), head_bytes)) return std::nullopt;
  if (std::memcmp(head.data(), "GCOL\1", 5) != 0) return std::nullopt;
  const std::uint64_t heap_bytes = number_of(head.data() + 8, raw.size_bytes);
  // A step is at least a head, and no heap has more objects than indices.
  std::uint64_t at = head_bytes;
  for (int objects = 0; objects <= UINT16_MAX; ++objects) {
    if (at + head_bytes > heap_bytes || !raw.read(place.heap + at, head.data(), head_bytes)) {
      return std::nullopt;
    }
    const std::uint64_t index = number_of(head.data(), 2);
    const std::uint64_t bytes = number_of(head.data() + 8, raw.size_bytes);
    if (index == 0 || bytes > heap_bytes - at - head_bytes) return std::nullopt;
    if (index == place.index) {
      if (place.length > bytes) return std::nullopt;
      std::string text(static_cast<std::size_t>(place.length), '\0');
      if (!raw.read(place.heap + at + head_bytes, text.data(), text.size())) return std::nullopt;
      return text;
    }
    at += head_bytes + (bytes + kObjectAlignment - 1) / kObjectAlignment * kObjectAlignment;
  }
  return std::nullopt;
}

}  // namespace

Result<std::string> read_variable_text(hid_t file, hid_t dataset) {
  const Hdf5Handle creation(H5Dget_create_plist(dataset), H5Pclose);
  if (!creation || H5Pget_layout(creation.get()) != H5D_CONTIGUOUS) {
    return bad_text("is a string of variable length in chunks or in the dataset's header, which is "
                    "not read: write it as a string of fixed length");
  }
  const haddr_t offset = H5Dget_offset(dataset);
  const auto raw = raw_file(file);
  if (offset == HADDR_UNDEF || !raw) return bad_text("is a string that was never written");
  const auto place = read_place(*raw, offset);
  if (!place) return damaged_text();
  if (place->length == 0) return std::string();
  if (place->length > kHdf5TextBytesMax) {
    return bad_text(fmt::format("is a string that says it has {} bytes, more than {}",
                                place->length, kHdf5TextBytesMax));
  }
  auto text = read_object(*raw, *place);
  if (!text) return damaged_text();
  text->resize(std::strlen(text->c_str()));
  return std::move(*text);
}

}  // namespace speedo
