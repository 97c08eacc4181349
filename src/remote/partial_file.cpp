// record := "speedo-parts 1" "key" KEY "version" VERSION "bytes" N "part-bytes" N ("part" N)*
//                                                                  each on a line of its own

#include "remote/partial_file.hpp"

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <speedo/base/folder.hpp>

#include "base/open_file.hpp"
#include "base/parse_number.hpp"
#include "remote/cache_record.hpp"

namespace speedo {

namespace {

constexpr std::size_t kPartsRecordBytesMax = std::size_t{16} << 20U;
constexpr std::string_view kForm = "speedo-parts 1", kPartLine = "part ";
constexpr mode_t kOwnerOnly = 0600;

Error cannot_keep(const std::filesystem::path& path, int reason) {
  const bool full = reason == ENOSPC || reason == EDQUOT;
  return {full ? ErrorCode::kFull : ErrorCode::kCannotWrite,
          fmt::format("cannot write '{}': {}", path.string(), std::strerror(reason))};
}

Result<void> write_at(int file, const std::filesystem::path& path, std::uint64_t offset,
                      std::span<const std::byte> piece) {
  while (!piece.empty()) {
    const ssize_t count = ::pwrite(file, piece.data(), piece.size(), static_cast<off_t>(offset));
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return cannot_keep(path, count < 0 ? errno : EIO);
    piece = piece.subspan(static_cast<std::size_t>(count));
    offset += static_cast<std::uint64_t>(count);
  }
  return {};
}

std::string record_head(const PartialFile::Place& place, const FileFacts& facts,
                        std::uint64_t part_bytes) {
  return fmt::format("{}\nkey {}\nversion {}\nbytes {}\npart-bytes {}\n", kForm, place.key,
                     facts.version, facts.bytes, part_bytes);
}

// Marks the parts that the lines of a record name; a last line that was cut off names none.
void mark_noted(std::string_view lines, ByteParts& parts) {
  for (std::size_t end = lines.find('\n'); end != std::string_view::npos; end = lines.find('\n')) {
    const std::string_view line = lines.substr(0, end);
    lines.remove_prefix(end + 1);
    if (!line.starts_with(kPartLine)) continue;
    const auto part = parse_number<std::size_t>(line.substr(kPartLine.size()));
    if (part && *part < parts.count()) parts.mark_there(*part);
  }
}

// What the record says counts only for the file that it was written of, in its whole length.
bool has_bytes(const std::filesystem::path& path, std::uint64_t bytes) {
  const auto stamp = stamp_of(path);
  return stamp && stamp->bytes == bytes;
}

Result<void> remove_record(const std::filesystem::path& record) {
  if (::unlink(record.c_str()) != 0 && errno != ENOENT) return cannot_keep(record, errno);
  return {};
}

}  // namespace

Result<std::unique_ptr<PartialFile>> PartialFile::open(const Place& place, const FileFacts& facts,
                                                       std::uint64_t part_bytes) {
  ByteParts parts(facts.bytes, part_bytes);
  const std::string head = record_head(place, facts, part_bytes);
  const auto noted = read_unconfined_file(place.record, kPartsRecordBytesMax);
  const bool goes_on = noted && !facts.version.empty() && noted->starts_with(head) &&
                       has_bytes(place.bytes, facts.bytes);
  if (goes_on) {
    mark_noted(std::string_view(*noted).substr(head.size()), parts);
  } else {
    // Before the file is made anew: an old record would take the new bytes for its own.
    SPEEDO_TRY(remove_record(place.record));
  }

  const int flags = O_RDWR | O_CLOEXEC | O_NOFOLLOW | (goes_on ? 0 : O_CREAT | O_TRUNC);
  const int bytes = ::open(place.bytes.c_str(), flags, kOwnerOnly);
  if (bytes < 0) return cannot_keep(place.bytes, errno);
  const int record = ::open(place.record.c_str(), flags | O_APPEND, kOwnerOnly);
  std::unique_ptr<PartialFile> file(new PartialFile(place, bytes, record, std::move(parts)));
  if (record < 0) return cannot_keep(place.record, errno);
  if (goes_on) return file;
  if (::ftruncate(bytes, static_cast<off_t>(facts.bytes)) != 0) {
    return cannot_keep(place.bytes, errno);
  }
  SPEEDO_TRY(write_at(record, place.record, 0, std::as_bytes(std::span(head))));
  return file;
}

Result<void> PartialFile::write(std::uint64_t offset, std::span<const std::byte> piece) const {
  return write_at(bytes_.get(), place_.bytes, offset, piece);
}

Result<void> PartialFile::note(std::size_t part) {
  // The record must not be on the disk before the bytes are.
  if (::fdatasync(bytes_.get()) != 0) return cannot_keep(place_.bytes, errno);
  const std::string line = fmt::format("{}{}\n", kPartLine, part);
  SPEEDO_TRY(write_at(record_.get(), place_.record, 0, std::as_bytes(std::span(line))));
  parts_.mark_there(part);
  return {};
}

Result<void> PartialFile::sync() const {
  if (::fsync(bytes_.get()) != 0) return cannot_keep(place_.bytes, errno);
  return {};
}

Result<void> PartialFile::put_in_place(const std::filesystem::path& target) const {
  // Before the file leaves, lest a record stay that speaks of a file that is gone.
  SPEEDO_TRY(remove_record(place_.record));
  if (::rename(place_.bytes.c_str(), target.c_str()) != 0) return cannot_keep(target, errno);
  const Descriptor folder(::open(folder_of(target).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.get() < 0 || ::fsync(folder.get()) != 0) return cannot_keep(target, errno);
  return {};
}

void PartialFile::remove() const {
  std::error_code ignored;
  std::filesystem::remove(place_.record, ignored);
  std::filesystem::remove(place_.bytes, ignored);
}

bool is_parts_record(const std::filesystem::path& path) {
  std::ifstream stream(path);
  std::string line;
  return std::getline(stream, line) && line == kForm;
}

}  // namespace speedo
