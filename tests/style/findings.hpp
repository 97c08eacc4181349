#pragma once

#include <algorithm>
#include <string>
#include <vector>

#include "style/source_tree.hpp"
#include "support/catch.hpp"

namespace speedo {

// What breaks a rule, each as PATH:LINE: TEXT.
using Findings = std::vector<std::string>;

inline void expect_none(const Findings& findings) {
  for (const std::string& finding : findings) UNSCOPED_INFO(finding);
  CHECK(findings.empty());
}

// The project's files, read once.
inline const std::vector<SourceFile>& tree() {
  static const std::vector<SourceFile> files = read_source_tree(SPEEDO_SOURCE_DIR);
  return files;
}

inline const SourceFile& file_named(const std::string& path) {
  const auto found = std::find_if(tree().begin(), tree().end(),
                                  [&](const SourceFile& file) { return file.path == path; });
  REQUIRE(found != tree().end());
  return *found;
}

}  // namespace speedo
