#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include <speedo/base/result.hpp>

namespace speedo {

// Names of classes, one a line, as Caffe's synset_words.txt has them: line 1 is class 0. Errors:
// those of read_file(); kData for a line without a name; kMismatch unless there are `classes`.
Result<std::vector<std::string>> read_class_labels(const std::filesystem::path& path,
                                                   std::int64_t classes);

}  // namespace speedo
