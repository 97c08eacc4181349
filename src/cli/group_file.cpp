#include "cli/group_file.hpp"

#include <cctype>
#include <map>
#include <sstream>

#include <speedo/base/file.hpp>

#include "base/log.hpp"
#include "cli/exit_code.hpp"

namespace speedo {

namespace {

constexpr std::size_t kGroupBytesMax = std::size_t{1} << 20U;
constexpr std::size_t kNameMax = 255;

Error bad_line(const std::string& path, int line, const std::string& what) {
  return {ErrorCode::kConfig, fmt::format("{}:{}: {}", path, line, what)};
}

bool is_name(const std::string& text) {
  for (const char c : text) {
    if (std::isgraph(static_cast<unsigned char>(c)) == 0) return false;
  }
  return text.size() <= kNameMax;
}

}  // namespace

Result<Groups> read_group_file(const std::string& path) {
  auto content = read_file(path, kGroupBytesMax);
  if (!content) {
    return Error{unless_refused(content.error().code, ErrorCode::kConfig),
                 "--groups " + path + ": " + content.error().message +
                     " (--groups takes a file, a number, or auto)"};
  }
  Groups groups;
  std::map<std::string, int> lines;  // of each name
  std::istringstream stream(*content);
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    std::istringstream words(line.substr(0, line.find('#')));
    std::vector<std::string> group;
    for (std::string name; words >> name;) {
      if (name.find(',') != std::string::npos) {
        return bad_line(path, number, "'" + name + "' holds a comma: separate names by blanks");
      }
      if (!is_name(name)) return bad_line(path, number, "not the name of a worker or of a host");
      const auto [place, is_new] = lines.emplace(name, number);
      if (!is_new) {
        return bad_line(path, number,
                        fmt::format("'{}' is in the group of line {} already; a worker belongs to "
                                    "one group",
                                    name, place->second));
      }
      group.push_back(std::move(name));
    }
    if (!group.empty()) groups.push_back(std::move(group));
  }
  if (groups.empty()) {
    return Error{ErrorCode::kConfig, "'" + path + "' holds no group: write one a line, names of "
                                         "workers or hosts separated by blanks"};
  }
  return groups;
}

}  // namespace speedo
