#pragma once

#include <map>
#include <string>

#include <speedo/base/result.hpp>

#include "caffe.pb.h"

namespace speedo {

// Which data each worker reads (--data-map), by the name under which it takes part, its --host:
//
//   worker0   shards/mnist_0          # a comment
//   "*"       shards/mnist_rest       # all others; without quotes, too
//
// A source with blanks stands in double quotes. A worker stands there once.
using DataMap = std::map<std::string, std::string>;
inline constexpr const char* kAllOthers = "*";

// Errors: kConfig, naming file and line; those of read_file().
Result<DataMap> read_data_map(const std::string& path);

// That of the worker. Error: kConfig if neither it nor "*" is there.
Result<std::string> mapped_source(const DataMap& map, const std::string& worker);

// Puts `source` in the place of what the train net reads. Error: kConfig unless exactly one layer
// of the phase TRAIN has a source.
Result<void> set_train_source(const std::string& source, caffe::SolverParameter& solver);

}  // namespace speedo
