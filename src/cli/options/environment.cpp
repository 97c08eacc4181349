#include "cli/options/environment.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <vector>

#include <unistd.h>

#include "cli/arguments.hpp"
#include "cli/options/option_error.hpp"
#include "cli/process_secrets.hpp"

namespace speedo {

namespace {

constexpr std::string_view kPrefix = "SPEEDO_";

// Those that say something else than an option; the last ones to tests.
constexpr std::array<std::string_view, 6> kOthers{kPasswordVariable,   kUsernameVariable,
                                                  "SPEEDO_DATA_DIR",   "SPEEDO_LONG",
                                                  "SPEEDO_SHARED_DIR", "SPEEDO_BIN_DIR"};
constexpr std::string_view kTestPrefix = "SPEEDO_TEST_";

// What Kubernetes and Docker set for a service called speedo-...: no word of the user's. Addresses
// stand in NAME_PORT and NAME_PORT_80_TCP, which the names of their parts begin with.
bool is_service_link(std::string_view name, std::string_view value) {
  if (name.ends_with("_SERVICE_HOST") || name.find("_SERVICE_PORT") != std::string_view::npos) {
    return true;
  }
  if (name.ends_with("_PORT") && value.starts_with("tcp://")) return true;
  const std::size_t port = name.find("_PORT_");
  return port != std::string_view::npos && name.find("_TCP", port) != std::string_view::npos;
}

bool is_for_others(std::string_view name) {
  return name.starts_with(kTestPrefix) ||
         std::find(kOthers.begin(), kOthers.end(), name) != kOthers.end();
}

Result<void> check_known(const std::string& name) {
  if (is_for_others(name)) return {};
  std::vector<std::string> known;
  for (const Option& option : option_table()) {
    if (option.place != OptionPlace::kFlag) continue;
    if (is_called(option, name.substr(kPrefix.size()))) return {};
    known.push_back(variable_of(option));
  }
  const std::string near = nearest(name, known);
  return Error{ErrorCode::kUsage, "environment: " + name + " is no option of SpeeDO's" +
                                      (near.empty() ? "" : ", did you mean " + near + "?") +
                                      " (speedo config lists all; unset it)"};
}

}  // namespace

Environment process_environment() {
  Environment result;
  for (char** entry = environ; *entry != nullptr; ++entry) {
    const std::string_view line(*entry);
    const std::size_t equals = line.find('=');
    if (!line.starts_with(kPrefix) || equals == std::string_view::npos) continue;
    result.emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return result;
}

std::string variable_of(const Option& option) {
  std::string name(kPrefix);
  for (const char c : option.name) {
    name += c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return name;
}

Result<void> read_environment(const Environment& environment, OptionValues& values) {
  std::map<const Option*, std::string> given;  // by which variable
  for (const auto& [name, text] : environment) {
    if (text.empty() || is_service_link(name, text)) continue;
    const Option* option = find_option(name.substr(kPrefix.size()), values.program());
    if (option == nullptr || option->place != OptionPlace::kFlag) {
      SPEEDO_TRY(check_known(name));
      continue;
    }
    if (const auto [before, is_first] = given.emplace(option, name); !is_first) {
      return Error{ErrorCode::kUsage, "environment: " + before->second + " and " + name +
                                          " are the same option: unset one of them"};
    }
    SPEEDO_TRY(check_value(*option, text, name, ErrorCode::kUsage));
    values.set({.option = option,
                .texts = {canonical_value(*option, text)},
                .source = Source::kEnvironment,
                .origin = name});
  }
  return {};
}

}  // namespace speedo
