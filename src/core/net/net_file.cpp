#include <speedo/core/net_file.hpp>

#include <utility>

#include <speedo/base/remote_files.hpp>

#include "core/prototxt.hpp"

namespace speedo {

Result<std::unique_ptr<Net>> read_net(const std::filesystem::path& prototxt, NetOptions options) {
  SPEEDO_ASSIGN(const std::filesystem::path file, find_file(prototxt.string(), {}));
  auto message = read_net_prototxt(file);
  if (!message) {
    Error error = std::move(message).error();
    if (error.code == ErrorCode::kNotFound) error.code = ErrorCode::kConfig;
    return error;
  }
  options.base = prototxt.parent_path();
  return Net::create(*message, options);
}

}  // namespace speedo
