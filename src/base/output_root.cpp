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

std::atomic<Root*> output_root = nullptr;

}  // namespace

Result<std::unique_ptr<OutputRoot>> OutputRoot::confine(const std::filesystem::path& folder) {
  SPEEDO_ASSERT(output_root.load() == nullptr);
  SPEEDO_ASSIGN(Root root, open_root(folder));
  output_root = std::make_unique<Root>(std::move(root)).release();
  return std::unique_ptr<OutputRoot>(new OutputRoot());
}

OutputRoot::~OutputRoot() { delete output_root.exchange(nullptr); }

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
