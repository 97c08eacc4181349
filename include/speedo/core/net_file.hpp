#pragma once

#include <filesystem>
#include <memory>

#include <speedo/base/result.hpp>
#include <speedo/core/net.hpp>

namespace speedo {

// The net of a prototxt, old forms upgraded. `options` brings the backend and what else the net
// needs; its `base` becomes the file's folder. Errors: those of Net::create(); kConfig with file,
// line and column, also for a missing file; kRefused if it may not be read.
Result<std::unique_ptr<Net>> read_net(const std::filesystem::path& prototxt, NetOptions options);

}  // namespace speedo
