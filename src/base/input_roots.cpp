#include "base/input_roots.hpp"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <string_view>
#include <system_error>
#include <utility>

#include <fcntl.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/remote_files.hpp>

#include "base/admitted_files.hpp"
#include "base/beneath.hpp"

namespace speedo {

struct InputRoots::Open {
  explicit Open(const Limits& limits) : addresses(limits.addresses), copies(limits.copies) {}
  std::vector<Root> folders;
  std::vector<std::string> addresses;
  AdmittedFiles copies;
};

namespace {

namespace fs = std::filesystem;

constexpr int kFlags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;

std::atomic<InputRoots::Open*> input_roots = nullptr;

// As open_beneath(), of copies too.
int open_within(const InputRoots::Open& roots, const fs::path& path, int flags, fs::path& real) {
  const int fd = open_beneath(roots.folders, path, flags, real);
  return fd >= 0 || errno != EXDEV ? fd : roots.copies.open(path, flags, real);
}

Error not_within(const InputRoots::Open& roots, const fs::path& path, const fs::path& real) {
  const std::string place = real == path ? "" : ", which is '" + real.string() + "',";
  return {ErrorCode::kData, "'" + path.string() + "'" + place + " is outside of --data-root " +
                                names_of(roots.folders) +
                                ": a net that came from a master may name nothing else; add the "
                                "folder that holds the data to --data-root"};
}

// Of addresses. What climbs, in letters or as %2e, is nowhere below.
bool is_at_or_below(std::string_view address, std::string_view root) {
  if (root.ends_with('/')) root.remove_suffix(1);
  if (!address.starts_with(root)) return false;
  const std::string_view rest = address.substr(root.size());
  const bool at_boundary = rest.empty() || rest[0] == '/' || rest[0] == '?' || rest[0] == '#';
  const bool climbs = rest.find("..") != std::string_view::npos ||
                      rest.find('\\') != std::string_view::npos ||
                      rest.find("%2e") != std::string_view::npos ||
                      rest.find("%2E") != std::string_view::npos;
  return at_boundary && !climbs;
}

Error cannot_open(const fs::path& path, int reason) {
  return {code_of_file_error(reason),
          "cannot open '" + path.string() + "': " + std::strerror(reason)};
}

}  // namespace

Result<std::unique_ptr<InputRoots>> InputRoots::confine(const Limits& limits) {
  SPEEDO_ASSERT(!are_inputs_confined() && !limits.folders.empty());
  auto open = std::make_unique<Open>(limits);
  for (const fs::path& folder : limits.folders) {
    SPEEDO_ASSIGN(Root root, open_root(folder));
    open->folders.push_back(std::move(root));
  }
  return std::unique_ptr<InputRoots>(new InputRoots(std::move(open)));
}

InputRoots::InputRoots(std::unique_ptr<Open> open) : open_(std::move(open)) {
  input_roots = open_.get();
}

InputRoots::~InputRoots() { input_roots = nullptr; }

bool are_inputs_confined() { return input_roots.load() != nullptr; }

Result<Descriptor> open_input(const fs::path& path) {
  const InputRoots::Open* const roots = input_roots.load();
  fs::path real;
  const int fd =
      roots == nullptr ? ::open(path.c_str(), kFlags) : open_within(*roots, path, kFlags, real);
  if (fd >= 0) return Descriptor(fd);
  const int reason = errno;
  if (roots != nullptr && reason == EXDEV) return not_within(*roots, path, real);
  return cannot_open(path, reason);
}

Result<void> check_input(const fs::path& path) {
  const InputRoots::Open* const roots = input_roots.load();
  if (roots == nullptr) return {};
  fs::path real;
  const Descriptor found(open_within(*roots, path, O_PATH | O_CLOEXEC, real));
  if (found.get() < 0 && errno == EXDEV) return not_within(*roots, path, real);
  return {};
}

Result<void> check_input_address(const std::string& address) {
  const InputRoots::Open* const roots = input_roots.load();
  const auto holds = [&](const std::string& each) { return is_at_or_below(address, each); };
  if (roots == nullptr || std::ranges::any_of(roots->addresses, holds)) return {};
  return Error{ErrorCode::kData, "'" + shown_name(address) +
                                     "': a net that came from a master may name no address that "
                                     "this worker was not told to read from: add it, or what it "
                                     "begins with, to --data-root"};
}

Result<void> admit_copy(const fs::path& copy) {
  InputRoots::Open* const roots = input_roots.load();
  return roots == nullptr ? Result<void>() : roots->copies.add(copy);
}

fs::path find_in_roots(const fs::path& path) {
  const InputRoots::Open* const roots = input_roots.load();
  if (roots == nullptr || path.is_absolute()) return {};
  std::error_code code;
  for (const Root& root : roots->folders) {
    if (fs::exists(root.path / path, code)) return root.path / path;
  }
  return {};
}

std::string also_looked_in() {
  const InputRoots::Open* const roots = input_roots.load();
  return roots == nullptr ? "" : ", below --data-root " + names_of(roots->folders);
}

}  // namespace speedo
