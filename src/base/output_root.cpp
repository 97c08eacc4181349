#include "base/output_root.hpp"

#include <atomic>
#include <cerrno>
#include <span>
#include <string>
#include <utility>

#include <fcntl.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/folder.hpp>

#include "base/beneath.hpp"

namespace speedo {

namespace {

std::atomic<const Root*> output_root = nullptr;
thread_local const std::filesystem::path* own_folder = nullptr;

}  // namespace

Result<std::unique_ptr<OutputRoot>> OutputRoot::confine(const std::filesystem::path& folder) {
  SPEEDO_ASSERT(output_root.load() == nullptr);
  SPEEDO_ASSIGN(Root root, open_root(folder));
  return std::unique_ptr<OutputRoot>(new OutputRoot(std::make_unique<Root>(std::move(root))));
}

OutputRoot::OutputRoot(std::unique_ptr<Root> root) : root_(std::move(root)) {
  output_root = root_.get();
}

OutputRoot::~OutputRoot() { output_root = nullptr; }

OwnOutputFolder::OwnOutputFolder(std::filesystem::path folder) : folder_(std::move(folder)) {
  SPEEDO_ASSERT(own_folder == nullptr);
  own_folder = &folder_;
}

OwnOutputFolder::~OwnOutputFolder() { own_folder = nullptr; }

Result<void> check_output(const std::filesystem::path& file) {
  const Root* const root = output_root.load();
  if (root == nullptr) return {};
  const std::filesystem::path target = behind_links(file);
  if (own_folder != nullptr && folder_of(target) == *own_folder) return {};
  std::filesystem::path real;
  const std::span<const Root> roots(root, 1);
  const Descriptor folder(
      open_beneath(roots, folder_of(target), O_PATH | O_DIRECTORY | O_CLOEXEC, real));
  if (folder.get() >= 0 || errno != EXDEV) return {};
  const std::string place = target == file
                                ? "in '" + real.string() + "'"
                                : "as '" + (real / target.filename()).string() +
                                      "', to which it is a symbolic link";
  return Error{ErrorCode::kCannotWrite,
               "'" + file.string() + "' would be written " + place +
                   ", outside of --output-root " + names_of(roots) + ": name a file below it"};
}

}  // namespace speedo
