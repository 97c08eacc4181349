// README against the code: what only a list in each could tell.

#include <algorithm>
#include <set>
#include <sstream>
#include <string>

#include "style/findings.hpp"

namespace speedo {
namespace {

std::string between(const std::string& text, const std::string& first, const std::string& last) {
  const std::size_t begin = text.find(first);
  REQUIRE(begin != std::string::npos);
  const std::size_t end = text.find(last, begin);
  REQUIRE(end != std::string::npos);
  return text.substr(begin + first.size(), end - begin - first.size());
}

// The names of the registry's entries: {"Name", make<... and {"Name", expand_...
std::set<std::string> registered_layers() {
  std::set<std::string> names;
  const std::string start = "{\"";
  for (const std::string& line : file_named("src/core/layers/registry.cpp").lines) {
    const std::size_t begin = line.find(start);
    const std::size_t stop = std::min(line.find("\", make<"), line.find("\", expand_"));
    if (begin == std::string::npos || stop == std::string::npos) continue;
    names.insert(line.substr(begin + start.size(), stop - begin - start.size()));
  }
  return names;
}

TEST_CASE("README lists the layers that there are") {
  std::string list = between(file_named("README.md").text, "- **Layers**: ", ";");
  std::replace(list.begin(), list.end(), ',', ' ');
  std::istringstream words(list);
  std::set<std::string> listed;
  for (std::string word; words >> word;) listed.insert(word);
  CHECK(listed.size() > 20);
  CHECK(listed == registered_layers());
}

}  // namespace
}  // namespace speedo
