#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace speedo {

// What the cache's record of a file says.
struct CacheRecord {
  std::string shown;    // the URI, for people
  std::string key;      // of the whole URI
  std::string version;  // as the server had it; empty: it had none
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0;  // the file's time of change when it was put there
  std::string sha256;           // empty: nobody has asked for it
};

std::string to_text(const CacheRecord& record);
// Nothing if there is none, or it is damaged or of another form.
std::optional<CacheRecord> read_cache_record(const std::filesystem::path& path);

// A file's bytes and the time of their change.
struct FileStamp {
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0;
  std::uint64_t disk_bytes = 0;  // what it takes of the disk, which is less where it has holes
};
// Nothing if no file lies there, but a link or a folder perhaps.
std::optional<FileStamp> stamp_of(const std::filesystem::path& path);

// Whether that is the file of this record.
bool is_file_of(const FileStamp& stamp, const CacheRecord& record);

}  // namespace speedo
