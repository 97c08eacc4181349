#include <speedo/core/net_file.hpp>

#include <utility>

#include "core/prototxt.hpp"

namespace speedo {

Result<std::unique_ptr<Net>> read_net(const std::filesystem::path& prototxt, NetOptions options) {
  auto message = read_net_prototxt(prototxt);
  if (!message) {
    Error error = std::move(message).error();
    if (error.code == ErrorCode::kNotFound) error.code = ErrorCode::kConfig;
    return error;
  }
  options.base = prototxt.parent_path();
  return Net::create(*message, options);
}

}  // namespace speedo
