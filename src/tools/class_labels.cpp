#include "tools/class_labels.hpp"

#include <sstream>

#include <fmt/format.h>

#include <speedo/base/file.hpp>

#include "base/byte_order_mark.hpp"

namespace speedo {

Result<std::vector<std::string>> read_class_labels(const std::filesystem::path& path,
                                                   std::int64_t classes) {
  SPEEDO_ASSIGN(const std::string text, read_file(path));
  std::vector<std::string> labels;
  std::istringstream stream{std::string(without_byte_order_mark(text))};
  for (std::string line; std::getline(stream, line);) {
    const std::size_t end = line.find_last_not_of(" \t\r");
    line.erase(end == std::string::npos ? 0 : end + 1);
    if (line.empty()) {
      return Error{ErrorCode::kData, fmt::format("'{}' line {}: a class without a name",
                                                 path.string(), labels.size() + 1)};
    }
    labels.push_back(line);
  }
  if (static_cast<std::int64_t>(labels.size()) == classes) return labels;
  return Error{ErrorCode::kMismatch, fmt::format("'{}' names {} classes, but the net has {}",
                                                 path.string(), labels.size(), classes)};
}

}  // namespace speedo
