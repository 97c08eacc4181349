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

std::string named_config_file(const OptionValues& values) {
  std::string path;
  values.get("config", path);
  return path;
}

}  // namespace

std::string config_file_of(const OptionValues& values) {
  bool is_off = false;
  values.get("no-config", is_off);
  if (is_off) return {};
  const std::string named = named_config_file(values);
  std::error_code code;
  return named.empty() && std::filesystem::exists(kConfigFile, code) ? kConfigFile : named;
}

namespace {

Result<void> read_chosen_file(OptionValues& values) {
  const std::string file = config_file_of(values);
  if (file.empty()) return {};
  return named_config_file(values).empty() ? read_own_config_file(file, values)
                                           : read_config_file(file, values);
}

Result<Parsed> read_sources(const std::vector<std::string>& arguments, OptionValues& values,
                            const Environment& environment, MissingArgument missing) {
  SPEEDO_TRY(refuse_later_flags(arguments));
  SPEEDO_ASSIGN(const Parsed parsed, read_command_line(arguments, values, missing));
  if (parsed == Parsed::kDone) return parsed;
  bool is_off = false;
  values.get("no-config", is_off);
  if (is_off) return parsed;
  SPEEDO_TRY(read_environment(environment, values));
  SPEEDO_TRY(read_chosen_file(values));
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
