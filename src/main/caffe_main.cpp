// `caffe`: what Caffe's program takes, for the commands of `speedo`. gflags takes flags before the
// command as well as behind it, and each command passes over those of the others.

#include <algorithm>
#include <array>
#include <cstdio>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <speedo/gpu/gpu_devices.hpp>

#include "base/parse_number.hpp"
#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"
#include "cli/flags/caffe_flags.hpp"
#include "cli/flags/gpu_choice.hpp"
#include "cli/options/read_options.hpp"
#include "main/commands.hpp"

namespace speedo {

namespace {

constexpr const char* kUsage =
    "usage: caffe <command> <args>\n"
    "\n"
    "commands:\n"
    "  train           train or finetune a model\n"
    "  test            score a model\n"
    "  device_query    show GPU diagnostic information\n"
    "  time            benchmark model execution time\n"
    "\n"
    "flags, with one dash or two, their value behind '=' or as the next argument:\n"
    "  -solver, -model, -weights, -snapshot   files to work with\n"
    "  -iterations     batches to run (test, time)\n"
    "  -phase          TRAIN or TEST (time)\n"
    "  -level, -stage  which layers belong to the net\n"
    "  -sigint_effect, -sighup_effect   snapshot, stop or none (train)\n"
    "  -gpu            the number of the GPU to compute on; of several the first, all is 0.\n"
    "                  Without a GPU that can be used: says so, and computes on the CPU\n"
    "  -flagfile       a file of such flags, one a line: -name=value\n"
    "  -help, -helpshort, -version   this text, and the version; the exit code is 0\n"
    "\n"
    "`caffe train --help` and the like list what else the command takes: it is `speedo train`.\n";

// Flags of Caffe's program, squashed. All take a value.
constexpr std::array<std::string_view, 11> kCaffeFlags = {
    "gpu",          "iterations", "level",  "model", "phase",  "sighupeffect",
    "siginteffect", "snapshot",   "solver", "stage", "weights"};

struct CaffeCommand {
  const char* name;
  Program program;
  CommandFunction function;
};

constexpr CaffeCommand kCaffeCommands[] = {{"train", Program::kTrain, train_command},
                                           {"test", Program::kTest, test_command},
                                           {"time", Program::kTime, time_command}};

// A command line taken apart.
struct CaffeLine {
  std::vector<std::string> words;               // without a flag: the command
  std::vector<std::vector<std::string>> flags;  // each with its value, if that is an argument
};

bool is_caffes(const std::string& name) {
  return std::find(kCaffeFlags.begin(), kCaffeFlags.end(), name) != kCaffeFlags.end();
}

// Of any of the commands: which one it is is not known yet.
bool takes_value(const std::string& name) {
  if (is_caffes(name)) return true;
  for (const CaffeCommand& command : kCaffeCommands) {
    const Option* option = find_option(name, command.program);
    if (option == nullptr) continue;
    return option->type.kind != ValueKind::kSwitch && option->type.kind != ValueKind::kOptionalText;
  }
  return false;
}

std::string name_of(const std::string& flag) { return squash(flag.substr(0, flag.find('='))); }

// Those of gflags that are answered by the usage, whatever the command. `caffe COMMAND -help` is
// the command's.
bool asks_for_usage(const std::string& name) { return name == "helpshort" || name == "helpfull"; }

// Whether a command knows the flag, or all do.
bool is_known(const std::string& name) {
  if (is_caffes(name) || name == "help" || name == "h" || name == "version") return true;
  return std::any_of(std::begin(kCaffeCommands), std::end(kCaffeCommands),
                     [&](const auto& each) { return find_option(name, each.program) != nullptr; });
}

CaffeLine take_apart(const std::vector<std::string>& arguments) {
  CaffeLine line;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& argument = arguments[i];
    if (!looks_like_flag(argument)) {
      line.words.push_back(argument);
      continue;
    }
    const GlogFlag glog = glog_flag(argument);
    std::vector<std::string> flag = {argument};
    const bool wants_next =
        glog.is_one ? glog.takes_next
                    : argument.find('=') == std::string::npos && takes_value(name_of(argument));
    if (wants_next && i + 1 < arguments.size()) flag.push_back(arguments[++i]);
    if (!glog.is_one) line.flags.push_back(std::move(flag));
  }
  return line;
}

// Numbers between commas, "all", or nothing: then the solver file says where to compute.
Result<std::string> value_of_gpu(const std::vector<std::string>& flag) {
  const std::size_t equals = flag.front().find('=');
  const bool is_behind = flag.size() > 1;
  if (!is_behind && equals == std::string::npos) {
    return usage_error("-gpu needs a value: the number of a GPU, or all");
  }
  std::string value = is_behind ? flag.back() : flag.front().substr(equals + 1);
  if (value.empty() || value == "all") return value;
  for (std::size_t begin = 0; begin <= value.size();) {
    const std::size_t comma = std::min(value.find(',', begin), value.size());
    const std::string_view number = std::string_view(value).substr(begin, comma - begin);
    const auto gpu = parse_number<int>(number);
    if (!gpu || *gpu < 0) {
      return usage_error(
          "-gpu takes the number of a GPU, several with commas between them, or all, not '" +
          value + "'");
    }
    begin = comma + 1;
  }
  return value;
}

// Caffe's scripts name a GPU whatever the machine has.
std::optional<std::string> usable_gpu(const std::string& wanted) {
  if (wanted.empty()) return std::nullopt;
  const std::string first = wanted == "all" ? "0" : wanted.substr(0, wanted.find(','));
  const auto here = gpu_devices();
  const int index = *parse_number<int>(first);  // value_of_gpu() has seen to it
  // Where another GPU can be used the number is a mistake, and the command says so.
  if (const auto usable = check_usable(index, here); !usable && usable_gpus(here).empty()) {
    std::fprintf(stderr, "caffe: -gpu %s: %s; computing on the CPU\n", wanted.c_str(),
                 usable.error().message.c_str());
    return std::nullopt;
  }
  if (first != wanted) {
    std::fprintf(stderr, "caffe: -gpu %s: computing on GPU %s alone\n", wanted.c_str(),
                 first.c_str());
  }
  return first;
}

// As gflags does, the last of several flags of one name counts.
bool is_given_again(const CaffeLine& line, std::size_t flag) {
  const auto is_same = [&](const std::vector<std::string>& later) {
    return name_of(later.front()) == name_of(line.flags[flag].front());
  };
  return std::any_of(line.flags.begin() + static_cast<std::ptrdiff_t>(flag) + 1, line.flags.end(),
                     is_same);
}

Result<void> check_gpu(const CaffeLine& line) {
  for (std::size_t i = 0; i < line.flags.size(); ++i) {
    if (name_of(line.flags[i].front()) != "gpu" || is_given_again(line, i)) continue;
    SPEEDO_TRY(value_of_gpu(line.flags[i]));
  }
  return {};
}

// What the command takes of the line: not what Caffe has for other commands.
Result<std::vector<std::string>> arguments_for(const CaffeCommand& command, const CaffeLine& line) {
  std::vector<std::string> arguments;
  for (std::size_t i = 0; i < line.flags.size(); ++i) {
    const std::vector<std::string>& flag = line.flags[i];
    const std::string name = name_of(flag.front());
    if (is_given_again(line, i)) continue;
    if (name == "gpu") {
      SPEEDO_ASSIGN(const std::string value, value_of_gpu(flag));
      if (const auto gpu = usable_gpu(value)) arguments.push_back("--gpu=" + *gpu);
      continue;
    }
    if (is_caffes(name) && find_option(name, command.program) == nullptr) continue;
    arguments.insert(arguments.end(), flag.begin(), flag.end());
  }
  return from_gflags(arguments, command.program);
}

Error no_command(const std::string& name) {
  std::vector<std::string> names = {"device_query"};
  for (const CaffeCommand& command : kCaffeCommands) names.emplace_back(command.name);
  const std::string near = nearest(name, names);
  return usage_error("unknown action: " + name +
                     (near.empty() ? "" : ", did you mean " + near + "?") +
                     " (caffe --help lists the commands)");
}

template <class Predicate>
bool has_flag(const CaffeLine& line, const Predicate& is_it) {
  return std::any_of(line.flags.begin(), line.flags.end(),
                     [&](const auto& flag) { return is_it(name_of(flag.front())); });
}

// Flags alone: help or version, or a command that was left out.
Result<int> without_command(const CaffeLine& line) {
  if (has_flag(line, [](const std::string& name) { return name == "version"; })) {
    std::printf("%s\n", version().c_str());
    return 0;
  }
  const bool asked =
      has_flag(line, [](const std::string& name) { return name == "help" || name == "h"; });
  std::fputs(kUsage, asked ? stdout : stderr);
  if (asked) return 0;
  return usage_error("a command is missing: train, test, time or device_query");
}

Result<int> run_caffe(const std::vector<std::string>& arguments, const ProcessSecrets& secrets) {
  SPEEDO_ASSIGN(const std::vector<std::string> all, with_flag_files(arguments));
  const CaffeLine line = take_apart(all);
  if (has_flag(line, asks_for_usage)) {
    std::fputs(kUsage, stdout);
    return 0;
  }
  if (line.words.empty()) return without_command(line);
  const std::string& name = line.words.front();
  // What stands behind a flag that is not known may be its value: the command names the flag.
  const bool all_known = std::all_of(line.flags.begin(), line.flags.end(), [](const auto& flag) {
    return is_known(name_of(flag.front()));
  });
  if (line.words.size() > 1 && all_known) {
    return usage_error("'" + line.words[1] + "' stands behind the command '" + name +
                       "', which takes flags alone");
  }
  if (name == "device_query") {
    SPEEDO_TRY(check_gpu(line));
    return device_query_command({{}, secrets});
  }
  for (const CaffeCommand& command : kCaffeCommands) {
    if (name != command.name) continue;
    SPEEDO_ASSIGN(std::vector<std::string> own, arguments_for(command, line));
    return command.function({std::move(own), secrets});
  }
  return no_command(name);
}

}  // namespace

int caffe_main(const std::vector<std::string>& arguments, const ProcessSecrets& secrets) {
  const auto code = run_caffe(arguments, secrets);
  return code ? *code : report_failure("caffe", code.error());
}

}  // namespace speedo
