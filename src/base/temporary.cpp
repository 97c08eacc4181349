#include <speedo/base/temporary.hpp>

#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/folder.hpp>

#include "base/descriptor.hpp"

namespace speedo {

namespace fs = std::filesystem;

namespace {

// NAME.speedo-tmp-XXXXXXXXXXXXXXXX: 16 characters of 5 random bits each.
constexpr std::string_view kInfix = ".speedo-tmp-";
constexpr std::size_t kRandomCharacters = 16;
constexpr std::string_view kAlphabet = "0123456789abcdefghjkmnpqrstvwxyz";

// A name that exists, or that a cleaner removed before it was locked, is drawn again so often.
constexpr int kDrawsMax = 16;

std::error_code last_error() { return {errno, std::generic_category()}; }

fs::path draw_name(const fs::path& target, std::error_code& code) {
  std::array<unsigned char, kRandomCharacters> bytes{};
  if (::getrandom(bytes.data(), bytes.size(), 0) != static_cast<ssize_t>(bytes.size())) {
    code = last_error();
  }
  std::string name = target.string() + std::string(kInfix);
  for (const unsigned char byte : bytes) name += kAlphabet[byte % kAlphabet.size()];
  return name;
}

// The name of the target that a file is a temporary of, which is not empty.
std::optional<std::string> target_of(const fs::path& path) {
  const std::string name = path.filename().string();
  const std::size_t tail = kInfix.size() + kRandomCharacters;
  if (name.size() <= tail) return std::nullopt;
  const std::size_t infix = name.size() - tail;
  const bool ours = name.compare(infix, kInfix.size(), kInfix) == 0 &&
                    name.find_first_not_of(kAlphabet, infix + kInfix.size()) == std::string::npos;
  return ours ? std::optional(name.substr(0, infix)) : std::nullopt;
}

// A folder, by its slash at the end, or nothing at all is no name that something could get.
bool has_name(const fs::path& target, std::error_code& code) {
  if (target.has_filename()) return true;
  code = std::make_error_code(target.empty() ? std::errc::no_such_file_or_directory
                                             : std::errc::is_a_directory);
  return false;
}

// The name is still the file or folder that `fd` is open on.
bool is_at(const fs::path& path, int fd) {
  struct stat named {
  }, opened{};
  return ::lstat(path.c_str(), &named) == 0 && ::fstat(fd, &opened) == 0 &&
         named.st_dev == opened.st_dev && named.st_ino == opened.st_ino;
}

void remove_if_stale(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (file.get() < 0) return;
  struct stat status {};
  const bool ours = ::fstat(file.get(), &status) == 0 && status.st_uid == ::geteuid() &&
                    (S_ISREG(status.st_mode) || S_ISDIR(status.st_mode));
  if (ours && ::flock(file.get(), LOCK_EX | LOCK_NB) == 0 && is_at(path, file.get())) {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
}

void remove_stale(const fs::path& target) {
  const auto present = list_folder(folder_of(target));
  if (!present) return;  // Whatever stands in the way will be named by the write itself.
  for (const fs::path& path : *present) {
    if (target_of(path) == target.filename()) remove_if_stale(path);
  }
}

int make_file(const fs::path& path, fs::perms mode) {
  return ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                static_cast<mode_t>(mode));
}

int make_folder(const fs::path& path) {
  if (::mkdir(path.c_str(), 0700) != 0) return -1;
  const int fd = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
  if (fd < 0 && errno == ENOENT) errno = EEXIST;  // Removed before it was locked: draw again.
  return fd;
}

// Makes and locks a new name; returns its descriptor, or -1.
int make(const fs::path& target, const std::function<int(const fs::path&)>& create, fs::path& made,
         std::error_code& code) {
  for (int draw = 0; draw < kDrawsMax; ++draw) {
    made = draw_name(target, code);
    if (code) return -1;
    const int fd = create(made);
    if (fd < 0 && errno != EEXIST) break;
    if (fd < 0) continue;
    // Where locks do not exist nobody can take one, so nobody removes it either.
    const bool locked = ::flock(fd, LOCK_EX | LOCK_NB) == 0 || errno != EWOULDBLOCK;
    if (locked && is_at(made, fd)) return fd;
    ::close(fd);
  }
  code = last_error();
  return -1;
}

bool sync_path(const fs::path& path) {
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  return file.get() >= 0 && ::fsync(file.get()) == 0;
}

bool sync_tree(const fs::path& path) {
  std::error_code code;
  if (fs::is_directory(path, code)) {
    const auto files = list_folder(path);
    if (!files) return false;
    for (const fs::path& file : *files) {
      if (!sync_path(file)) return false;
    }
  }
  return sync_path(path);
}

// Some file systems, as NFS, rename only over what is there, but can give a file a second name.
int rename_to_new(const char* from, const char* to) {
  if (::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0) return 0;
  return errno == EINVAL || errno == ENOSYS ? ::link(from, to) : -1;
}

}  // namespace

Temporary::Temporary(fs::path target, fs::path made, fs::path path, int descriptor)
    : target_(std::move(target)),
      made_(std::move(made)),
      path_(std::move(path)),
      descriptor_(descriptor) {}

Temporary::Temporary(Temporary&& other) noexcept
    : target_(std::move(other.target_)),
      made_(std::exchange(other.made_, fs::path())),
      path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)) {}

Temporary::~Temporary() { discard(); }

void Temporary::discard() {
  std::error_code ignored;
  if (!made_.empty()) fs::remove_all(std::exchange(made_, fs::path()), ignored);
  if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
}

std::optional<Temporary> Temporary::file_beside(const fs::path& target, std::error_code& code,
                                                fs::perms mode) {
  if (!has_name(target, code)) return std::nullopt;
  remove_stale(target);
  fs::path made;
  const int fd =
      make(target, [mode](const fs::path& path) { return make_file(path, mode); }, made, code);
  if (fd < 0) return std::nullopt;
  return Temporary(target, made, made, fd);
}

std::optional<Temporary> Temporary::path_beside(const fs::path& target, std::error_code& code) {
  if (!has_name(target, code)) return std::nullopt;
  remove_stale(target);
  fs::path made;
  const int fd = make(target, make_folder, made, code);
  if (fd < 0) return std::nullopt;
  return Temporary(target, made, made / target.filename(), fd);
}

void Temporary::sweep(const fs::path& beginning) {
  const auto present = list_folder(folder_of(beginning));
  if (!present) return;
  const std::string head = beginning.filename().string();
  for (const fs::path& path : *present) {
    const auto target = target_of(path);
    if (target && target->starts_with(head)) remove_if_stale(path);
  }
}

Result<void> Temporary::sync() const {
  if (sync_tree(path_)) return {};
  const int reason = errno;
  return Error{ErrorCode::kCannotWrite,
               "cannot write '" + target_.string() + "': " + std::strerror(reason)};
}

Result<void> Temporary::put_in_place() {
  SPEEDO_ASSERT(!made_.empty());
  std::error_code code;
  if (const auto there = fs::status(target_, code); fs::exists(there) && fs::is_other(there)) {
    discard();
    return Error{ErrorCode::kCannotWrite, "cannot write '" + target_.string() +
                                              "': it is a device, a pipe or a socket, and no file "
                                              "takes its place"};
  }
  return placed_by(&::rename);
}

Result<void> Temporary::put_in_new_place() {
  SPEEDO_ASSERT(!made_.empty());
  return placed_by(&rename_to_new);
}

Result<void> Temporary::placed_by(int (*name)(const char* from, const char* to)) {
  if (!sync_tree(path_) || name(path_.c_str(), target_.c_str()) != 0) {
    const int reason = errno;
    const bool is_taken = reason == EEXIST && name != &::rename;
    const Error error{
        ErrorCode::kCannotWrite,
        "cannot write '" + target_.string() +
            "': " + (is_taken ? "it exists, and is not written over" : std::strerror(reason))};
    discard();
    return error;
  }
  sync_path(folder_of(target_));
  discard();
  return {};
}

}  // namespace speedo
