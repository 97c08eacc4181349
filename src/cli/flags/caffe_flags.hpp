#pragma once

#include <string>
#include <vector>

#include "cli/options/option.hpp"

namespace speedo {

// Command lines as Caffe's programs took them, by gflags and glog: flags of glog (-logtostderr,
// -log_dir, ...) are left out, as all is logged to standard error here; "--noNAME" of a switch of
// `program` becomes "--NAME=false".
std::vector<std::string> from_gflags(const std::vector<std::string>& arguments, Program program);

// Whether the argument is a flag of glog's, and whether its value is the next argument.
struct GlogFlag {
  bool is_one = false, takes_next = false;
};
GlogFlag glog_flag(const std::string& argument);

}  // namespace speedo
