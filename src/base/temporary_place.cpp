#include "base/temporary_place.hpp"

#include <system_error>

namespace speedo {

namespace fs = std::filesystem;

Result<fs::path> temporary_place() {
  std::error_code code;
  const fs::path named = fs::temp_directory_path(code);
  const fs::path whole = code ? named : fs::absolute(named, code);
  if (!code) return whole.lexically_normal();
  return Error{ErrorCode::kCannotWrite,
               "what TMPDIR (or TMP, TEMP, TEMPDIR) names is no folder for temporary files: " +
                   code.message()};
}

}  // namespace speedo
