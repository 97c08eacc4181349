#pragma once

#include <filesystem>
#include <mutex>
#include <optional>
#include <set>
#include <string>

#include <speedo/base/result.hpp>

#include "base/beneath.hpp"

namespace speedo {

// Those files of a folder that may be opened. Thread safety: from any thread.
class AdmittedFiles {
 public:
  // The folder is opened with the first file: it may be made for that.
  explicit AdmittedFiles(std::filesystem::path folder);

  // Errors: as open_root(), of the folder; kNotFound, kRefused, kData.
  Result<void> add(const std::filesystem::path& file);

  // As open_beneath().
  int open(const std::filesystem::path& path, int flags, std::filesystem::path& real) const;

 private:
  const Root* root() const;
  bool has(const std::filesystem::path& real) const;

  const std::filesystem::path folder_;
  mutable std::mutex mutex_;     // of what follows
  std::optional<Root> root_;     // for good
  std::set<std::string> files_;  // without symbolic links
};

}  // namespace speedo
