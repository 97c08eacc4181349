#include "remote/cache_room.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>
#include <system_error>
#include <unordered_set>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include <speedo/base/digest.hpp>
#include <speedo/base/folder.hpp>

#include "base/log.hpp"
#include "base/memory_limit.hpp"
#include "base/parse_number.hpp"
#include "remote/cache_record.hpp"
#include "remote/file_lock.hpp"
#include "remote/partial_file.hpp"

namespace speedo {

namespace {

namespace fs = std::filesystem;

constexpr std::size_t kCountDigits = 20;

// A file of the cache, whole or on its way.
struct HeldFile {
  std::string entry;
  fs::path file, record, lock;
  std::uint64_t bytes = 0;
  std::int64_t used_ns = 0;  // when it was last asked for
};

bool is_folder_name(const std::string& name) {
  return name.size() == to_string(Digest{}).size() &&
         std::all_of(name.begin(), name.end(),
                     [](unsigned char letter) { return std::isxdigit(letter) != 0; });
}

bool is_there(const fs::path& path) {
  std::error_code code;
  return fs::symlink_status(path, code).type() != fs::file_type::not_found;
}

// What the record is of; nothing if it is none, or the file is another one.
std::optional<HeldFile> held_by(const fs::path& cache, const fs::path& record) {
  const bool is_whole = record.extension() == ".file";
  if (!is_whole && record.extension() != ".parts") return std::nullopt;
  const fs::path folder = record.parent_path().filename(), name = record.stem();
  HeldFile held{.entry = cache_entry_name(folder.string(), name.string()),
                .file = cache / (is_whole ? "files" : "partial") / folder / name,
                .record = record,
                .lock = record.parent_path() / (name.string() + ".lock")};
  const auto stamp = stamp_of(held.file), used = stamp_of(record);
  if (!stamp || !used) return std::nullopt;
  if (is_whole) {
    const auto text = read_cache_record(record);
    if (!text || !is_file_of(*stamp, *text)) return std::nullopt;
  } else if (!is_parts_record(record)) {
    return std::nullopt;
  }
  held.bytes = stamp->bytes;
  held.used_ns = used->changed_ns;
  return held;
}

// What a process left that was ended before it wrote the record, or behind its removal: a file
// beside whose lock there is none. It is of no use to anybody, so it goes first. While a process
// lives that is at such a point, it holds the lock, or that of the room.
void add_leavings(const fs::path& cache, const fs::path& lock, std::vector<HeldFile>& all) {
  if (lock.extension() != ".lock") return;
  const fs::path folder = lock.parent_path().filename(), name = lock.stem();
  const auto add = [&](const char* kind, const fs::path& record) {
    const fs::path file = cache / kind / folder / name;
    const auto stamp = stamp_of(file);
    if (!stamp) return;
    all.push_back({.entry = cache_entry_name(folder.string(), name.string()),
                   .file = file,
                   .record = record,
                   .lock = lock,
                   .bytes = stamp->bytes,
                   .used_ns = 0});
  };
  const std::string beginning = (lock.parent_path() / name).string();
  const fs::path record = beginning + ".file", parts = beginning + ".parts";
  if (!is_there(record)) add("files", record);
  if (!is_there(parts) || (stamp_of(parts) && !is_parts_record(parts))) add("partial", parts);
}

Result<std::vector<HeldFile>> list_held(const fs::path& cache) {
  std::vector<HeldFile> all;
  std::error_code code;
  if (!fs::exists(cache / "records", code)) return all;
  SPEEDO_ASSIGN(const std::vector<fs::path> folders, list_folder(cache / "records"));
  for (const fs::path& folder : folders) {
    if (!is_folder_name(folder.filename().string()) ||
        !fs::is_directory(fs::symlink_status(folder, code))) {
      continue;
    }
    SPEEDO_ASSIGN(const std::vector<fs::path> records, list_folder(folder));
    for (const fs::path& record : records) {
      if (auto held = held_by(cache, record)) all.push_back(std::move(*held));
      add_leavings(cache, record, all);
    }
  }
  return all;
}

// The record goes before its file: none may speak of a file that is gone. The lock goes last, since
// a file without a record is found by it. False if another process has the lock, or if the file or
// its record cannot go.
bool remove_held(const HeldFile& held) {
  const auto lock = try_lock_file(held.lock);
  std::error_code code;
  if (!lock && fs::exists(held.lock, code)) return false;
  for (const fs::path& path : {held.record, held.file}) {
    fs::remove(path, code);
    if (code) return false;
  }
  fs::remove(held.lock, code);
  return true;
}

std::optional<std::uint64_t> read_sum(const Descriptor& lock) {
  std::array<char, kCountDigits> digits{};
  const ssize_t count = ::pread(lock.get(), digits.data(), digits.size(), 0);
  if (count != static_cast<ssize_t>(digits.size())) return std::nullopt;
  return parse_number<std::uint64_t>({digits.data(), digits.size()});
}

Result<void> write_sum(const Descriptor& lock, const fs::path& cache, std::uint64_t sum) {
  const std::string digits = fmt::format("{:0{}}\n", sum, kCountDigits);
  const ssize_t count = ::pwrite(lock.get(), digits.data(), digits.size(), 0);
  if (count == static_cast<ssize_t>(digits.size())) return {};
  return no_cache(cache, count < 0 ? std::strerror(errno) : "the disk is full");
}

std::string shown_bytes(std::uint64_t bytes) {
  return format_bytes(static_cast<std::int64_t>(std::min<std::uint64_t>(bytes, INT64_MAX)));
}

Error no_room(const CacheRoom::Incoming& incoming, std::uint64_t bytes_max, std::uint64_t used) {
  return {ErrorCode::kFull,
          fmt::format("'{}' needs {} in the cache, which may have {} (--data-cache-limit), and {} "
                      "of it are in use: raise the limit, or give another folder with --data-cache",
                      incoming.shown, shown_bytes(incoming.bytes), shown_bytes(bytes_max),
                      shown_bytes(used))};
}

std::uint64_t bytes_of(const std::vector<HeldFile>& all) {
  std::uint64_t bytes = 0;
  for (const HeldFile& held : all) bytes += held.bytes;
  return bytes;
}

// What is to be left. Some less than must be, so that the next ones find room without a look at all
// files, but no large file leaves for that.
struct Goal {
  static constexpr std::uint64_t kSpareShare = 16;
  std::uint64_t most = 0, spare = 0;

  bool is_reached(std::uint64_t sum, const HeldFile& next) const {
    return sum <= most && (most - sum >= spare || next.bytes > spare);
  }
};

// Removes what nobody uses until that is reached, or nothing can go. Returns what is left.
std::uint64_t shrink(std::vector<HeldFile>& all, const std::unordered_set<std::string>& used,
                     const Goal& goal) {
  std::uint64_t sum = bytes_of(all), removed = 0, count = 0;
  std::ranges::sort(all, {}, &HeldFile::used_ns);
  for (const HeldFile& held : all) {
    if (goal.is_reached(sum, held)) break;
    if (used.contains(held.entry) || !remove_held(held)) continue;
    SPEEDO_DEBUG("Removed '{}' from the cache", held.file.string());
    sum -= held.bytes;
    removed += held.bytes;
    count += 1;
  }
  if (count > 0) {
    SPEEDO_INFO("Removed {} file{} ({}) from the cache of remote files, as --data-cache-limit says",
                count, count == 1 ? "" : "s", shown_bytes(removed));
  }
  return sum;
}

}  // namespace

std::string cache_entry_name(std::string_view folder, std::string_view file) {
  return to_string(digest_of(fmt::format("{}/{}", folder, file)));
}

Result<void> CacheRoom::make(const Descriptor& lock, const CacheUses& uses,
                             const Incoming& incoming) const {
  const std::optional<std::uint64_t> sum = read_sum(lock);
  if (bytes_max_ == 0) {
    return sum ? write_sum(lock, cache_, *sum + incoming.bytes) : Result<void>();
  }
  if (incoming.bytes > bytes_max_) return no_room(incoming, bytes_max_, 0);
  const std::uint64_t others_max = bytes_max_ - incoming.bytes;
  if (sum && *sum <= others_max) return write_sum(lock, cache_, *sum + incoming.bytes);

  SPEEDO_ASSIGN(std::vector<HeldFile> all, list_held(cache_));
  std::erase_if(all, [&](const HeldFile& held) { return held.entry == incoming.entry; });
  SPEEDO_ASSIGN(const std::unordered_set<std::string> used, uses.all());
  std::uint64_t left = bytes_of(all);
  if (left > others_max) {
    const Goal goal{others_max, std::min(others_max, bytes_max_ / Goal::kSpareShare)};
    left = shrink(all, used, goal);
  }
  if (left > others_max) return no_room(incoming, bytes_max_, left);
  return write_sum(lock, cache_, left + incoming.bytes);
}

}  // namespace speedo
