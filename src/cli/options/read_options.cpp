#include "cli/options/read_options.hpp"

#include <filesystem>
#include <system_error>

#include "cli/options/config_file.hpp"
#include "cli/options/later_flags.hpp"

namespace speedo {

namespace {

constexpr const char* kConfigFile = "speedo.toml";

Result<void> check_required(const OptionValues& values) {
  for (const OptionValue& value : values.all()) {
    if (!value.option->required || !value.texts.empty()) continue;
    return Error{ErrorCode::kUsage,
                 "--" + std::string(value.option->name) + " is required (see --help)"};
  }
  return {};
}

}  // namespace

std::string config_file_of(const OptionValues& values) {
  bool is_off = false;
  values.get("no-config", is_off);
  std::string path;
  if (is_off) return path;
  values.get("config", path);
  std::error_code code;
  if (path.empty() && std::filesystem::exists(kConfigFile, code)) path = kConfigFile;
  return path;
}

namespace {

Result<Parsed> read_sources(const std::vector<std::string>& arguments, OptionValues& values,
                            const Environment& environment, MissingArgument missing) {
  SPEEDO_TRY(refuse_later_flags(arguments));
  SPEEDO_ASSIGN(const Parsed parsed, read_command_line(arguments, values, missing));
  if (parsed == Parsed::kDone) return parsed;
  bool is_off = false;
  values.get("no-config", is_off);
  if (is_off) return parsed;
  SPEEDO_TRY(read_environment(environment, values));
  const std::string file = config_file_of(values);
  if (!file.empty()) SPEEDO_TRY(read_config_file(file, values));
  return parsed;
}

}  // namespace

Result<Parsed> read_some_options(const std::vector<std::string>& arguments, OptionValues& values,
                                 const Environment& environment) {
  return read_sources(arguments, values, environment, MissingArgument::kBorne);
}

Result<Parsed> read_options(const std::vector<std::string>& arguments, OptionValues& values,
                            const Environment& environment) {
  SPEEDO_ASSIGN(const Parsed parsed, read_sources(arguments, values, environment,
                                                 MissingArgument::kRefused));
  if (parsed == Parsed::kRun) SPEEDO_TRY(check_required(values));
  return parsed;
}

}  // namespace speedo
