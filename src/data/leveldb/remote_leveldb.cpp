#include "data/leveldb/remote_leveldb.hpp"

#include <cstdint>
#include <set>
#include <system_error>

#include <fmt/format.h>

#include <speedo/base/folder.hpp>
#include <speedo/base/remote_files.hpp>

#include "data/leveldb/leveldb_folder.hpp"

namespace speedo {

namespace {

namespace fs = std::filesystem;

Result<void> fetch_table(const std::string& folder, std::uint64_t number) {
  const auto newer = find_file(fmt::format("{}{:06}.ldb", folder, number), {});
  if (newer) return {};
  if (!may_be_missing(newer.error())) return newer.error();
  const auto older = find_file(fmt::format("{}{:06}.sst", folder, number), {});
  if (older) return {};
  return may_be_missing(older.error()) ? newer.error() : older.error();
}

// A log that has no records yet may be missing: LevelDB makes it when it opens the database.
Result<bool> fetch_log(const std::string& folder, std::uint64_t number) {
  const auto log = find_file(fmt::format("{}{:06}.log", folder, number), {});
  if (log) return true;
  if (may_be_missing(log.error())) return false;
  return log.error();
}

// Logs that an earlier database at this URI has left behind would be taken for this one's.
Result<void> remove_other_logs(const fs::path& folder, const std::set<fs::path>& logs) {
  SPEEDO_ASSIGN(const std::vector<fs::path> files, list_folder(folder));
  for (const fs::path& file : files) {
    std::error_code code;
    if (file.extension() == ".log" && logs.count(file.filename()) == 0) fs::remove(file, code);
    if (code) {
      return Error{ErrorCode::kCannotWrite,
                   fmt::format("cannot remove '{}': {}", file.string(), code.message())};
    }
  }
  return {};
}

}  // namespace

Result<fs::path> fetch_leveldb(const std::string& uri) {
  const std::string folder = uri + (uri.ends_with('/') ? "" : "/");
  SPEEDO_ASSIGN(const fs::path current, find_file(folder + "CURRENT", {}));
  SPEEDO_ASSIGN(const std::string name, leveldb_manifest_name(current));
  SPEEDO_ASSIGN(const fs::path manifest, find_file(folder + name, {}));
  SPEEDO_ASSIGN(const LeveldbVersion version, read_leveldb_manifest(manifest));
  for (const auto& [number, bytes] : version.tables) SPEEDO_TRY(fetch_table(folder, number));
  std::set<fs::path> logs;
  for (const std::uint64_t number : {version.previous_log, version.log}) {
    if (number == 0) continue;
    SPEEDO_ASSIGN(const bool is_there, fetch_log(folder, number));
    if (is_there) logs.insert(fmt::format("{:06}.log", number));
  }
  SPEEDO_TRY(remove_other_logs(current.parent_path(), logs));
  return current.parent_path();
}

}  // namespace speedo
