#include "cli/flags/caffe_flags.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "cli/arguments.hpp"

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

// The switch of `program` that "--noNAME" turns off; null if it is none.
const Option* turned_off(const std::string& argument, Program program) {
  const std::string name = name_of_flag(argument);
  if (!name.starts_with("no") || find_option(name, program) != nullptr) return nullptr;
  const Option* option = find_option(name.substr(2), program);
  const bool is_switch = option != nullptr && option->type.kind == ValueKind::kSwitch;
  return is_switch ? option : nullptr;
}

}  // namespace

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
