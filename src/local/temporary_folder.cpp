#include "local/temporary_folder.hpp"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <system_error>

namespace speedo {

namespace fs = std::filesystem;

Result<fs::path> make_temporary_folder(const std::string& name, std::size_t longest) {
  std::error_code code;
  std::string pattern = (fs::temp_directory_path(code) / (name + "-XXXXXX")).string();
  if (code || pattern.size() > longest) pattern = "/tmp/" + name + "-XXXXXX";
  if (::mkdtemp(pattern.data()) == nullptr) {
    return Error{ErrorCode::kCannotWrite,
                 "cannot make the temporary folder '" + pattern + "': " + std::strerror(errno)};
  }
  return fs::path(pattern);
}

}  // namespace speedo
