#include "base/output_root.hpp"

#include <atomic>
#include <cerrno>
#include <span>
#include <utility>

#include <fcntl.h>

#include <speedo/base/assert.hpp>
#include <speedo/base/folder.hpp>

#include "base/beneath.hpp"

namespace speedo {

namespace {

std::atomic<const Root*> output_root = nullptr;

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

Result<void> check_output(const std::filesystem::path& file) {
  const Root* const root = output_root.load();
  if (root == nullptr) return {};
  std::filesystem::path real;
  const std::span<const Root> roots(root, 1);
  const Descriptor folder(
      open_beneath(roots, folder_of(file), O_PATH | O_DIRECTORY | O_CLOEXEC, real));
  if (folder.get() >= 0 || errno != EXDEV) return {};
  return Error{ErrorCode::kCannotWrite,
               "'" + file.string() + "' would be written in '" + real.string() +
                   "', outside of --output-root " + names_of(roots) + ": name a file below it"};
}

}  // namespace speedo
