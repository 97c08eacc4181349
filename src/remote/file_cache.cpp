// record := "speedo-file 1" "uri" SHOWN "key" KEY "version" VERSION "bytes" N "changed" NS
//           "sha256" HEX                                  each on a line of its own

#include "remote/file_cache.hpp"

#include <cerrno>
#include <chrono>
#include <cstring>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <speedo/base/digest.hpp>
#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "base/memory_limit.hpp"
#include "base/parse_number.hpp"

namespace speedo {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFileNameBytesMax = 200;  // 255, with room for the endings
constexpr std::size_t kRecordBytesMax = 65536;
constexpr mode_t kOwnersFile = 0600;

Error no_cache(const fs::path& path, const std::string& why) {
  return {ErrorCode::kCannotWrite,
          fmt::format("the cache of remote files cannot be kept in '{}': {}; give another folder "
                      "with --data-cache",
                      path.string(), why)};
}

// The file's bytes and the time of their change; nothing if there is none.
struct Stamp {
  std::uint64_t bytes = 0;
  std::int64_t changed_ns = 0;
};

std::optional<Stamp> stamp_of(const fs::path& path) {
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  constexpr std::int64_t kSecond = 1000000000;
  return Stamp{static_cast<std::uint64_t>(status.st_size),
               status.st_mtim.tv_sec * kSecond + status.st_mtim.tv_nsec};
}

std::string record_text(const FileCache::Entry& entry, const CachedFile& file,
                        std::int64_t changed_ns) {
  return fmt::format("speedo-file 1\nuri {}\nkey {}\nversion {}\nbytes {}\nchanged {}\nsha256 {}\n",
                     entry.shown, entry.key, file.version, file.bytes, changed_ns, file.sha256);
}

// The rest of the next line, which must begin with `name`.
std::optional<std::string> field(std::istringstream& lines, const std::string& name) {
  std::string line;
  if (!std::getline(lines, line) || !line.starts_with(name + " ")) return std::nullopt;
  return line.substr(name.size() + 1);
}

}  // namespace

Result<FileCache> FileCache::open(const fs::path& folder) {
  std::error_code code;
  const bool made = fs::create_directories(folder, code);
  if (code) return no_cache(folder, code.message());
  if (made) fs::permissions(folder, fs::perms::owner_all, code);
  if (code) return no_cache(folder, code.message());
  if (auto writable = check_prefix_writable((folder / "probe").string()); !writable) {
    return no_cache(folder, writable.error().message);
  }
  return FileCache(folder);
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
               .key = to_string(digest_of(uri.text())),
               .shown = uri.shown()};
}

Result<std::unique_ptr<Descriptor>> FileCache::lock(const Entry& entry,
                                                    const std::function<bool()>& stopped) const {
  constexpr std::chrono::milliseconds kLook{50};
  for (const fs::path& path : {entry.file, entry.partial, entry.record}) {
    std::error_code code;
    fs::create_directories(path.parent_path(), code);
    if (code) return no_cache(path.parent_path(), code.message());
  }
  const int flags = O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW;
  auto lock = std::make_unique<Descriptor>(::open(entry.lock.c_str(), flags, kOwnersFile));
  if (lock->get() < 0) return no_cache(entry.lock, std::strerror(errno));
  for (bool waits = false; ::flock(lock->get(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK && errno != EINTR) return no_cache(entry.lock, std::strerror(errno));
    if (stopped && stopped()) {
      return Error{ErrorCode::kUnavailable,
                   fmt::format("'{}': waiting for the process that fetches it was ended by a "
                               "signal",
                               entry.shown)};
    }
    if (!std::exchange(waits, true)) {
      SPEEDO_INFO("Waiting for '{}', which is being fetched already", entry.shown);
    }
    std::this_thread::sleep_for(kLook);
  }
  return lock;
}

std::optional<CachedFile> FileCache::find(const Entry& entry) {
  const auto text = read_file(entry.record, kRecordBytesMax);
  const auto stamp = stamp_of(entry.file);
  if (!text || !stamp) return std::nullopt;
  std::istringstream lines(*text);
  const auto form = field(lines, "speedo-file"), uri = field(lines, "uri"),
             key = field(lines, "key"), version = field(lines, "version"),
             bytes = field(lines, "bytes"), changed = field(lines, "changed"),
             sha256 = field(lines, "sha256");
  if (form != "1" || !uri || key != entry.key || !version || !sha256 || !bytes || !changed) {
    return std::nullopt;
  }
  const bool unchanged = parse_number<std::uint64_t>(*bytes) == stamp->bytes &&
                         parse_number<std::int64_t>(*changed) == stamp->changed_ns;
  if (!unchanged) return std::nullopt;
  return CachedFile{*version, stamp->bytes, *sha256};
}

Result<void> FileCache::record(const Entry& entry, const CachedFile& file) {
  const auto stamp = stamp_of(entry.file);
  if (!stamp || stamp->bytes != file.bytes) return no_cache(entry.file, "it has changed");
  return write_file_atomically(entry.record, record_text(entry, file, stamp->changed_ns));
}

Result<void> FileCache::forget(const Entry& entry) {
  std::error_code code;
  fs::remove(entry.record, code);
  if (code) return no_cache(entry.record, code.message());
  return {};
}

Result<void> FileCache::check_room(const std::string& shown, std::uint64_t bytes) const {
  std::error_code code;
  const fs::space_info space = fs::space(folder_, code);
  if (code || bytes <= space.available) return {};
  constexpr std::uint64_t kShownMax = INT64_MAX;
  return Error{
      ErrorCode::kFull,
      fmt::format("'{}' needs {} in the cache, but '{}' has room for {}: make room there, "
                  "or give another folder with --data-cache",
                  shown, format_bytes(static_cast<std::int64_t>(std::min(bytes, kShownMax))),
                  folder_.string(), format_bytes(static_cast<std::int64_t>(space.available)))};
}

}  // namespace speedo
