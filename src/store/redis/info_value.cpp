#include "store/redis/info_value.hpp"

#include <algorithm>

namespace speedo {

std::string info_value(std::string_view info, std::string_view name) {
  for (std::size_t at = 0; at < info.size();) {
    const std::size_t end = std::min(info.find_first_of("\r\n", at), info.size());
    const std::string_view line = info.substr(at, end - at);
    if (line.starts_with(name) && line.substr(name.size()).starts_with(':')) {
      return std::string(line.substr(name.size() + 1));
    }
    at = end + 1;
  }
  return "";
}

}  // namespace speedo
