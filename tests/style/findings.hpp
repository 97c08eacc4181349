#pragma once

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

}  // namespace speedo
