// CURRENT   := name of a MANIFEST, newline
// MANIFEST  := a log of edits, each := (tag:varint fields)*
//   1 comparator:piece   2 log:varint   3 next file:varint   4 last sequence:varint
//   5 level:varint key:piece (where to compact next)         6 level:varint file:varint (deleted)
//   7 level:varint file:varint bytes:varint smallest:piece largest:piece (new)
//   9 previous log:varint
// Valid: the tables that are new and not deleted; logs from `log` on, and `previous log`.

#include "data/leveldb/leveldb_folder.hpp"

#include <algorithm>
#include <map>
#include <string>
#include <system_error>

#include <fmt/format.h>
#include <speedo/base/file.hpp>
#include <speedo/base/folder.hpp>

#include "base/parse_number.hpp"
#include "base/text_of.hpp"
#include "data/leveldb/byte_cursor.hpp"
#include "data/leveldb/leveldb_log.hpp"

namespace speedo {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCurrentBytesMax = 4096;
constexpr std::string_view kComparator = "leveldb.BytewiseComparator";

// False for a tag that is not known.
bool apply_field(std::uint64_t tag, ByteCursor& cursor, LeveldbVersion& version) {
  switch (tag) {
    case 1:
      version.comparator = text_of(cursor.piece());
      return true;
    case 2:
      version.log = cursor.varint();
      return true;
    case 3:
    case 4:
      cursor.varint();
      return true;
    case 5:
      cursor.varint();
      cursor.piece();
      return true;
    case 6:
      cursor.varint();
      version.tables.erase(cursor.varint());
      return true;
    case 7: {
      cursor.varint();
      const std::uint64_t number = cursor.varint();
      version.tables[number] = cursor.varint();
      cursor.piece();
      cursor.piece();
      return true;
    }
    case 9:
      version.previous_log = cursor.varint();
      return true;
    default:
      return false;
  }
}

}  // namespace

Result<LeveldbVersion> read_leveldb_manifest(const fs::path& path) {
  SPEEDO_ASSIGN(const RandomFile file, RandomFile::open(path));
  LeveldbLog log(file);
  LeveldbVersion version;
  version.comparator = kComparator;
  for (;;) {
    SPEEDO_ASSIGN(const bool more, log.next());
    if (!more) break;
    ByteCursor cursor(log.record());
    bool known = true;
    while (known && !cursor.left().empty()) known = apply_field(cursor.varint(), cursor, version);
    if (!known || cursor.failed()) {
      return Error{ErrorCode::kData,
                   fmt::format("LevelDB file '{}' has an edit that cannot be read: it is damaged, "
                               "or of a newer format",
                               path.string())};
    }
  }
  if (version.comparator == kComparator) return version;
  return Error{ErrorCode::kUnsupported,
               fmt::format("LevelDB file '{}': the keys are ordered by '{}', only the order of "
                           "their bytes is known",
                           path.string(), version.comparator)};
}

Result<std::string> leveldb_manifest_name(const fs::path& current) {
  SPEEDO_ASSIGN(std::string name, read_file(current, kCurrentBytesMax));
  while (!name.empty() && (name.back() == '\n' || name.back() == '\r')) name.pop_back();
  if (!name.starts_with("MANIFEST-") || name.find('/') != std::string::npos) {
    return Error{ErrorCode::kData,
                 fmt::format("LevelDB file '{}' names no MANIFEST: it is damaged; copy the whole "
                             "folder, or convert the data again",
                             current.string())};
  }
  return name;
}

namespace {

Result<fs::path> table_path(const fs::path& folder, std::uint64_t number) {
  std::error_code code;
  for (const char* ending : {"ldb", "sst"}) {
    fs::path path = folder / fmt::format("{:06}.{}", number, ending);
    if (fs::exists(path, code)) return path;
  }
  return Error{ErrorCode::kData,
               fmt::format("LevelDB '{}' lacks its file {:06}.ldb: copy the whole folder, or "
                           "convert the data again",
                           folder.string(), number)};
}

}  // namespace

Result<LeveldbFolder> read_leveldb_folder(const fs::path& folder) {
  SPEEDO_ASSIGN(const std::string manifest, leveldb_manifest_name(folder / "CURRENT"));
  SPEEDO_ASSIGN(const LeveldbVersion version, read_leveldb_manifest(folder / manifest));
  LeveldbFolder result;
  for (const auto& [number, bytes] : version.tables) {
    SPEEDO_ASSIGN(fs::path path, table_path(folder, number));
    result.tables.push_back({std::move(path), bytes});
  }
  SPEEDO_ASSIGN(const std::vector<fs::path> files, list_folder(folder));
  std::map<std::uint64_t, fs::path> logs;
  for (const fs::path& file : files) {
    if (file.extension() != ".log") continue;
    const auto number = parse_number<std::uint64_t>(file.stem().string());
    if (!number || (*number < version.log && *number != version.previous_log)) continue;
    logs[*number] = file;
  }
  for (auto& [number, path] : logs) result.logs.push_back(std::move(path));
  return result;
}

}  // namespace speedo
