#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include <speedo/base/result.hpp>

#include "base/descriptor.hpp"
#include "remote/byte_parts.hpp"
#include "remote/origin.hpp"

namespace speedo {

// A file on its way: its bytes, and a record of which parts of them are there, so that a transfer
// that a process did not finish goes on in the next one.
// Invariant: a part that the record names is in the file; the record goes before the file does.
// Thread safety: write() from several threads, for different bytes; the rest by one at a time.
class PartialFile {
 public:
  struct Place {
    std::filesystem::path bytes, record;  // their folders exist
    std::string key;                      // whose bytes they are
  };
  // Goes on with what lies there if it is of this key and of the same version, and the file has
  // its size; begins anew otherwise. Error: kCannotWrite. Requires: nobody else has the place open.
  static Result<std::unique_ptr<PartialFile>> open(const Place& place, const FileFacts& facts,
                                                   std::uint64_t part_bytes);

  ByteParts& parts() { return parts_; }
  int descriptor() const { return bytes_.get(); }
  // Errors: kFull, kCannotWrite.
  Result<void> write(std::uint64_t offset, std::span<const std::byte> piece) const;
  // From here on the part is there, also for the next process. Errors: as write().
  Result<void> note(std::size_t part);
  // All its bytes are on the disk from here on. Error: kCannotWrite.
  Result<void> sync() const;
  // Requires: sync(), and nothing written since. Error: kCannotWrite; the next one begins anew.
  Result<void> put_in_place(const std::filesystem::path& target) const;
  // Nothing of it is left.
  void remove() const;

 private:
  PartialFile(Place place, int bytes, int record, ByteParts parts)
      : place_(std::move(place)), bytes_(bytes), record_(record), parts_(std::move(parts)) {}

  Place place_;
  Descriptor bytes_, record_;
  ByteParts parts_;
};

// Whether the file at `path` is the record of one.
bool is_parts_record(const std::filesystem::path& path);

}  // namespace speedo
