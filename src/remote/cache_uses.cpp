// list := ENTRY*    each on a line of its own, among empty ones

#include "remote/cache_uses.hpp"

#include <cerrno>
#include <cstring>
#include <sstream>
#include <system_error>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <unistd.h>

#include <speedo/base/folder.hpp>

#include "base/open_file.hpp"
#include "base/random_bits.hpp"
#include "remote/file_lock.hpp"

namespace speedo {

namespace {

namespace fs = std::filesystem;

constexpr const char* kEnding = ".uses";
constexpr mode_t kListMode = 0600;
constexpr std::size_t kListBytesMax = std::size_t{1} << 34U;

}  // namespace

CacheUses::~CacheUses() {
  if (!list_ || process_ != ::getpid()) return;
  std::error_code ignored;
  fs::remove(file_, ignored);
}

// Nobody looks at the lists meanwhile, so nobody sees it before it is locked.
Result<void> CacheUses::begin() {
  std::error_code code;
  fs::create_directories(folder_, code);
  if (code) return no_cache(folder_, code.message());
  SPEEDO_TRY(living_lists());
  file_ = folder_ / fmt::format("{}-{:016x}{}", ::getpid(), random_bits(), kEnding);
  const int flags = O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC | O_NOFOLLOW;
  auto list = std::make_unique<Descriptor>(::open(file_.c_str(), flags, kListMode));
  if (list->get() < 0 || ::flock(list->get(), LOCK_EX | LOCK_NB) != 0) {
    return no_cache(file_, std::strerror(errno));
  }
  list_ = std::move(list);
  process_ = ::getpid();
  return {};
}

Result<void> CacheUses::note(const std::string& entry) {
  if (!list_) SPEEDO_TRY(begin());
  if (noted_.contains(entry)) return {};
  // The line before may have been cut, by a disk that was full.
  const std::string line = "\n" + entry + "\n";
  const ssize_t written = ::write(list_->get(), line.data(), line.size());
  if (written != static_cast<ssize_t>(line.size())) {
    return no_cache(file_, written < 0 ? std::strerror(errno) : "the disk is full");
  }
  noted_.insert(entry);
  return {};
}

Result<std::vector<fs::path>> CacheUses::living_lists() const {
  std::error_code code;
  if (!fs::exists(folder_, code)) return std::vector<fs::path>();
  SPEEDO_ASSIGN(std::vector<fs::path> lists, list_folder(folder_));
  std::erase_if(lists, [&](const fs::path& list) {
    if (list.extension() != kEnding) return true;
    const auto lock = try_lock_file(list);
    if (lock) fs::remove(list, code);
    return lock != nullptr;
  });
  return lists;
}

Result<std::unordered_set<std::string>> CacheUses::all() const {
  std::unordered_set<std::string> entries;
  SPEEDO_ASSIGN(const std::vector<fs::path> lists, living_lists());
  for (const fs::path& list : lists) {
    auto text = read_unconfined_file(list, kListBytesMax);
    // Its process may have just ended.
    if (!text && text.error().code == ErrorCode::kNotFound) continue;
    if (!text) return no_cache(list, text.error().message);
    std::istringstream lines(*text);
    for (std::string line; std::getline(lines, line);) entries.insert(line);
  }
  return entries;
}

}  // namespace speedo
