#include "cli/manual/config_report.hpp"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <speedo/base/remote_files.hpp>
#include <speedo/store/store_address.hpp>

#include "base/json_text.hpp"
#include "cli/options/program_table.hpp"

namespace speedo {

namespace {

constexpr std::size_t kOriginColumns = 16;

const char* source_name(Source source) {
  switch (source) {
    case Source::kFlag: return "flag";
    case Source::kEnvironment: return "environment";
    case Source::kSection:
    case Source::kFile: return "file";
    case Source::kDefault: break;
  }
  return "default";
}

std::string shown_value(const OptionValue& value) {
  std::string text;
  for (const std::string& each : value.texts) text += (text.empty() ? "" : ",") + each;
  return value.option->name == "redis" ? redacted(text) : shown_name(text);
}

std::string shown_origin(const OptionValue& value) {
  return value.source == Source::kDefault ? "default" : value.origin;
}

// What holds, also without a value.
std::string meaning(const OptionValue& value) {
  if (!value.texts.empty()) return shown_value(value);
  if (!value.option->otherwise.empty()) return "(" + std::string(value.option->otherwise) + ")";
  return value.option->type.kind == ValueKind::kSwitch ? "false" : "-";
}

bool is_shown(const OptionValue& value) { return value.option->place == OptionPlace::kFlag; }

std::size_t name_columns(const OptionValues& values) {
  std::size_t columns = 0;
  for (const OptionValue& value : values.all()) {
    columns = std::max(columns, value.option->name.size());
  }
  return columns;
}

}  // namespace

std::string config_table(const OptionValues& values, const std::string& file) {
  std::string text = fmt::format("{}; configuration file: {}\n",
                                 entry_of(values.program()).name, file.empty() ? "none" : file);
  const std::size_t columns = name_columns(values);
  std::string group;
  for (const OptionValue& value : values.all()) {
    if (!is_shown(value)) continue;
    if (value.option->group != group) text += fmt::format("\n{}\n", value.option->group);
    group = value.option->group;
    text += fmt::format("  {:<{}}  {:<{}}  {}\n", value.option->name, columns,
                        shown_origin(value), kOriginColumns, meaning(value));
  }
  return text;
}

std::string config_json(const OptionValues& values, const std::string& file) {
  nlohmann::ordered_json report;
  report["program"] = entry_of(values.program()).name;
  report["file"] = file.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(file);
  report["options"] = nlohmann::ordered_json::array();
  for (const OptionValue& value : values.all()) {
    if (!is_shown(value)) continue;
    nlohmann::ordered_json row;
    row["name"] = value.option->name;
    row["value"] =
        value.texts.empty() ? nlohmann::ordered_json() : nlohmann::ordered_json(shown_value(value));
    row["source"] = source_name(value.source);
    row["origin"] = shown_origin(value);
    row["default"] = std::string(value.option->value.empty() ? value.option->otherwise
                                                             : value.option->value);
    report["options"].push_back(std::move(row));
  }
  return json_text(report);
}

}  // namespace speedo
