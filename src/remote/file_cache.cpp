#include "remote/file_cache.hpp"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>

#include <speedo/base/digest.hpp>
#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "base/memory_limit.hpp"
#include "remote/cache_record.hpp"
#include "remote/file_lock.hpp"
#include "remote/partial_file.hpp"

namespace speedo {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileNameBytesMax = 200;  // 255, with room for the endings

}  // namespace

FileCache::FileCache(fs::path folder, std::uint64_t bytes_max)
    : folder_(std::move(folder)),
      room_(folder_, bytes_max),
      uses_(std::make_unique<CacheUses>(folder_ / "uses")) {}

Result<FileCache> FileCache::open(const fs::path& folder, std::uint64_t bytes_max) {
  std::error_code code;
  const bool made = fs::create_directories(folder, code);
  if (code) return no_cache(folder, code.message());
  if (made) fs::permissions(folder, fs::perms::owner_all, code);
  if (code) return no_cache(folder, code.message());
  if (auto writable = check_file_writable(folder / "probe"); !writable) {
    return no_cache(folder, writable.error().message);
  }
  return FileCache(folder, bytes_max);
}

Result<FileCache::Entry> FileCache::entry(const RemoteUri& uri) const {
  const std::string name = uri.file_name();
  if (name.size() > kFileNameBytesMax) {
    return usage_error(fmt::format("URI '{}': the file's name has {} bytes, more than {}",
                                   uri.shown(), name.size(), kFileNameBytesMax));
  }
  const std::string folder = to_string(digest_of(uri.folder()));
  const fs::path records = folder_ / "records" / folder;
  return Entry{.file = folder_ / "files" / folder / name,
               .partial = folder_ / "partial" / folder / name,
               .record = records / (name + ".file"),
               .parts = records / (name + ".parts"),
               .lock = records / (name + ".lock"),
               .name = cache_entry_name(folder, name),
               .key = to_string(digest_of(uri.text())),
               .shown = uri.shown()};
}

Result<std::unique_ptr<Descriptor>> FileCache::lock(const Entry& entry,
                                                    const Stopped& stopped) const {
  for (const fs::path& path : {entry.file, entry.partial, entry.record}) {
    std::error_code code;
    fs::create_directories(path.parent_path(), code);
    if (code) return no_cache(path.parent_path(), code.message());
  }
  auto locked = lock_file(entry.lock, {.stopped = stopped, .on_waiting = [&] {
    SPEEDO_INFO("Waiting for '{}', which is being fetched already", entry.shown);
  }});
  if (locked || locked.error().code != ErrorCode::kUnavailable) return locked;
  return Error{ErrorCode::kUnavailable,
               fmt::format("'{}': waiting for the process that fetches it was ended by a signal",
                           entry.shown)};
}

Result<std::unique_ptr<Descriptor>> FileCache::lock_room(const Stopped& stopped) const {
  return lock_file(folder_ / "room", {.stopped = stopped, .on_waiting = {}});
}

Result<void> FileCache::use(const Entry& entry, const Stopped& stopped) const {
  SPEEDO_ASSIGN(const std::unique_ptr<Descriptor> room, lock_room(stopped));
  return uses_->note(entry.name);
}

std::optional<CachedFile> FileCache::find(const Entry& entry) {
  const auto record = read_cache_record(entry.record);
  const auto stamp = stamp_of(entry.file);
  if (!record || !stamp || record->key != entry.key || !is_file_of(*stamp, *record)) {
    return std::nullopt;
  }
  // If that fails, the file leaves sooner.
  ::utimensat(AT_FDCWD, entry.record.c_str(), nullptr, AT_SYMLINK_NOFOLLOW);
  return CachedFile{record->version, stamp->bytes, record->sha256};
}

Result<void> FileCache::record(const Entry& entry, const CachedFile& file) {
  const auto stamp = stamp_of(entry.file);
  if (!stamp || stamp->bytes != file.bytes) return no_cache(entry.file, "it has changed");
  return write_file_atomically(entry.record, to_text({.shown = entry.shown,
                                                      .key = entry.key,
                                                      .version = file.version,
                                                      .bytes = file.bytes,
                                                      .changed_ns = stamp->changed_ns,
                                                      .sha256 = file.sha256}));
}

Result<void> FileCache::keep(const Entry& entry, const PartialFile& whole, const CachedFile& facts,
                             const Stopped& stopped) const {
  SPEEDO_ASSIGN(const std::unique_ptr<Descriptor> room, lock_room(stopped));
  std::error_code code;
  fs::remove(entry.record, code);
  if (code) return no_cache(entry.record, code.message());
  SPEEDO_TRY(whole.put_in_place(entry.file));
  return record(entry, facts);
}

Result<std::unique_ptr<Descriptor>> FileCache::make_room(const Entry& entry, std::uint64_t bytes,
                                                         const Stopped& stopped) const {
  SPEEDO_ASSIGN(std::unique_ptr<Descriptor> room, lock_room(stopped));
  SPEEDO_TRY(room_.make(*room, *uses_, {entry.name, entry.shown, bytes}));
  SPEEDO_TRY(check_disk(entry, bytes));
  return room;
}

Result<void> FileCache::check_disk(const Entry& entry, std::uint64_t bytes) const {
  std::error_code code;
  const fs::space_info space = fs::space(folder_, code);
  // What the partial file takes is there already, or is free once that begins anew.
  const std::uint64_t taken = stamp_of(entry.partial).value_or(FileStamp{}).disk_bytes;
  const std::uint64_t missing = bytes - std::min(bytes, taken);
  if (code || missing <= space.available) return {};
  constexpr std::uint64_t kShownMax = INT64_MAX;
  return Error{
      ErrorCode::kFull,
      fmt::format("'{}' needs {} more in the cache, but '{}' has room for {}: make room there, "
                  "or give another folder with --data-cache",
                  entry.shown,
                  format_bytes(static_cast<std::int64_t>(std::min(missing, kShownMax))),
                  folder_.string(), format_bytes(static_cast<std::int64_t>(space.available)))};
}

}  // namespace speedo
