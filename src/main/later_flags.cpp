#include "main/later_flags.hpp"

#include <algorithm>
#include <array>

#include "main/arguments.hpp"

namespace speedo {

namespace {

struct LaterFlag {
  const char* flag;  // squashed
  const char* shown;
  const char* what;
  const char* remedy;
};

constexpr std::array<LaterFlag, 2> kLaterFlags{{
    {"hdfs", "--hdfs", "the HDFS store", "built: Redis, --redis HOST[:PORT]"},
    {"gpu", "--gpu", "computing on GPUs", "leave the flag out to compute on the CPU"},
}};

}  // namespace

Result<void> refuse_later_flags(const std::vector<std::string>& arguments) {
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (!argument.starts_with("-")) continue;
    const std::string name = squash(argument.substr(0, argument.find('=')));
    const auto* const flag = std::find_if(kLaterFlags.begin(), kLaterFlags.end(),
                                          [&](const LaterFlag& each) { return name == each.flag; });
    if (flag == kLaterFlags.end()) continue;
    return Error{ErrorCode::kUsage, std::string(flag->shown) + ": " + flag->what +
                                        " is not built yet (" + flag->remedy + ")"};
  }
  return {};
}

}  // namespace speedo
