#include "cli/flags/caffe_flags.hpp"

#include <algorithm>
#include <array>
#include <sstream>
#include <string_view>

#include <fmt/format.h>
#include <speedo/base/file.hpp>

#include "base/trimmed.hpp"
#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"
#include "cli/net_inputs.hpp"

namespace speedo {

namespace {

constexpr std::array<std::string_view, 5> kGlogSwitches = {
    "logtostderr", "alsologtostderr", "colorlogtostderr", "logprefix", "stoploggingiffulldisk"};
constexpr std::array<std::string_view, 10> kGlogValues = {
    "logdir",      "minloglevel", "stderrthreshold", "v",      "vmodule", "logbufsecs",
    "logbuflevel", "maxlogsize",  "logbacktraceat",  "loglink"};

template <std::size_t kCount>
bool holds(const std::array<std::string_view, kCount>& all, std::string_view name) {
  return std::find(all.begin(), all.end(), name) != all.end();
}

// The flag's name, squashed: without dashes, and what stands behind an equals sign.
std::string name_of_flag(const std::string& argument) {
  return squash(argument.substr(0, argument.find('=')));
}

constexpr std::size_t kFlagFileBytesMax = std::size_t{1} << 20U;
constexpr int kFlagFileDepthMax = 8;  // a file that names itself would have no end

Result<std::vector<std::string>> read_flag_file(const std::string& file) {
  SPEEDO_ASSIGN(const std::string text, read_file(file, kFlagFileBytesMax));
  std::vector<std::string> flags;
  std::istringstream stream(text);
  int number = 0;
  for (std::string whole; std::getline(stream, whole);) {
    number += 1;
    const std::string line(trimmed(whole, " \t\r"));
    if (line.empty() || line.starts_with('#')) continue;
    if (!looks_like_flag(line)) {
      return usage_error(
          fmt::format("-flagfile '{}' line {}: '{}' is no flag: write one a line, "
                      "-name=value",
                      file, number, line));
    }
    flags.push_back(line);
  }
  return flags;
}

Result<void> add_arguments(const std::vector<std::string>& arguments, int depth,
                           std::vector<std::string>& result) {
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!looks_like_flag(argument) || name_of_flag(argument) != "flagfile") {
      result.push_back(argument);
      continue;
    }
    const std::size_t equals = argument.find('=');
    if (equals == std::string::npos && i + 1 == arguments.size()) {
      return usage_error("-flagfile needs the name of a file");
    }
    const std::string files =
        equals != std::string::npos ? argument.substr(equals + 1) : arguments[++i];
    if (depth == kFlagFileDepthMax) {
      return usage_error(fmt::format("-flagfile '{}': more than {} files name one another", files,
                                     kFlagFileDepthMax));
    }
    for (const std::string& file : split_at_commas(files)) {
      SPEEDO_ASSIGN(const std::vector<std::string> flags, read_flag_file(file));
      SPEEDO_TRY(add_arguments(flags, depth + 1, result));
    }
  }
  return {};
}

// The switch of `program` that "--noNAME" turns off; null if it is none.
const Option* turned_off(const std::string& argument, Program program) {
  const std::string name = name_of_flag(argument);
  if (!name.starts_with("no") || find_option(name, program) != nullptr) return nullptr;
  const Option* option = find_option(name.substr(2), program);
  const bool is_switch = option != nullptr && option->type.kind == ValueKind::kSwitch;
  return is_switch ? option : nullptr;
}

}  // namespace

Result<std::vector<std::string>> with_flag_files(const std::vector<std::string>& arguments) {
  std::vector<std::string> result;
  SPEEDO_TRY(add_arguments(arguments, 0, result));
  return result;
}

GlogFlag glog_flag(const std::string& argument) {
  if (!looks_like_flag(argument)) return {};
  const std::string name = name_of_flag(argument);
  const bool negated = name.starts_with("no") && holds(kGlogSwitches, name.substr(2));
  if (holds(kGlogSwitches, name) || negated) return {true, false};
  return {holds(kGlogValues, name), argument.find('=') == std::string::npos};
}

std::vector<std::string> from_gflags(const std::vector<std::string>& arguments, Program program) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (argument == "--") {
      result.insert(result.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i),
                    arguments.end());
      break;
    }
    if (const GlogFlag glog = glog_flag(argument); glog.is_one) {
      if (glog.takes_next) ++i;
      continue;
    }
    const Option* off = looks_like_flag(argument) ? turned_off(argument, program) : nullptr;
    result.push_back(off != nullptr ? "--" + std::string(off->name) + "=false" : argument);
  }
  return result;
}

}  // namespace speedo
