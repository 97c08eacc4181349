#pragma once

#include <string>
#include <vector>

#include <speedo/base/result.hpp>

#include "cli/options/option.hpp"

namespace speedo {

// Command lines as Caffe's programs took them, by gflags and glog: flags of glog (-logtostderr,
// -log_dir, ...) are left out, as all is logged to standard error here; "--noNAME" of a switch of
// `program` becomes "--NAME=false".
std::vector<std::string> from_gflags(const std::vector<std::string>& arguments, Program program);

// Puts the flags of each "-flagfile FILE[,FILE...]" in its place, as gflags does: one a line, with
// its value behind an equals sign; lines that are empty or begin with '#' are passed over. Errors:
// kUsage for a line that is no flag, with its place; of a file that cannot be read, its name.
Result<std::vector<std::string>> with_flag_files(const std::vector<std::string>& arguments);

// Whether the argument is a flag of glog's, and whether its value is the next argument.
struct GlogFlag {
  bool is_one = false, takes_next = false;
};
GlogFlag glog_flag(const std::string& argument);

}  // namespace speedo
