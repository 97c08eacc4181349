#include "cli/output_file.hpp"

#include <cerrno>
#include <cstring>
#include <filesystem>

#include <fmt/format.h>
#include <unistd.h>

namespace speedo {

Result<void> check_output_folder(const std::string& file) {
  if (file.empty()) return {};
  const std::filesystem::path parent = std::filesystem::path(file).parent_path();
  const std::string folder = parent.empty() ? "." : parent.string();
  if (::access(folder.c_str(), W_OK | X_OK) == 0) return {};
  return Error{ErrorCode::kCannotWrite, fmt::format("cannot write '{}': folder '{}': {}", file,
                                                    folder, std::strerror(errno))};
}

}  // namespace speedo
