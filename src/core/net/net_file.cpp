#include <speedo/core/net_file.hpp>

#include "base/read_found.hpp"
#include "core/prototxt.hpp"

namespace speedo {

Result<std::unique_ptr<Net>> read_net(const std::filesystem::path& prototxt, NetOptions options) {
  SPEEDO_ASSIGN(const caffe::NetParameter message,
                read_found(prototxt.string(), {}, read_net_prototxt));
  options.base = prototxt.parent_path();
  return Net::create(message, options);
}

}  // namespace speedo
