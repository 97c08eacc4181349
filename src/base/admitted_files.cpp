#include "base/admitted_files.hpp"

#include <cerrno>
#include <span>
#include <system_error>
#include <utility>

namespace speedo {

AdmittedFiles::AdmittedFiles(std::filesystem::path folder) : folder_(std::move(folder)) {}

Result<void> AdmittedFiles::add(const std::filesystem::path& file) {
  const std::lock_guard guard(mutex_);
  if (!root_) {
    SPEEDO_ASSIGN(root_, open_root(folder_));
  }
  if (files_.count(file.string()) != 0) return {};
  std::error_code code;
  const std::filesystem::path real = std::filesystem::canonical(file, code);
  if (code) {
    return Error{code_of_file_error(code.value()),
                 "cannot open '" + file.string() + "': " + code.message()};
  }
  files_.insert(real.string());
  return {};
}

int AdmittedFiles::open(const std::filesystem::path& path, int flags,
                        std::filesystem::path& real) const {
  if (const Root* const folder = root()) {
    Descriptor file(open_beneath(std::span(folder, 1), path, flags, real));
    if (file.get() < 0 || has(real)) return file.release();
  }
  errno = EXDEV;
  return -1;
}

const Root* AdmittedFiles::root() const {
  const std::lock_guard guard(mutex_);
  return root_ ? &*root_ : nullptr;
}

bool AdmittedFiles::has(const std::filesystem::path& real) const {
  const std::lock_guard guard(mutex_);
  return files_.count(real.string()) != 0;
}

}  // namespace speedo
