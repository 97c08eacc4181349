#include "cli/flags/flag_values.hpp"

#include <algorithm>
#include <cmath>

#include <CLI/CLI.hpp>

#include "base/parse_number.hpp"

namespace speedo {

namespace {

constexpr std::int64_t kCountMax = 2147483647;
constexpr std::int64_t kPortMax = 65535;

CLI::Option* check(CLI::Option* option, const char* kind,
                   std::function<std::string(const std::string&)> function) {
  CLI::Validator validator(std::move(function), "");
  return option->type_name(kind)->check(validator);
}

}  // namespace

CLI::Option* takes_range(CLI::Option* option, std::int64_t min, std::int64_t max,
                         const std::string& what_max) {
  return check(option, "N", [min, max, what_max](const std::string& text) -> std::string {
    const auto value = parse_number<std::int64_t>(text);
    if (value && *value >= min && *value <= max) return "";
    return "takes a whole number from " + std::to_string(min) + " to " + std::to_string(max) +
           (what_max.empty() ? "" : " (" + what_max + ")") + ", not '" + text + "'";
  });
}

CLI::Option* takes_count(CLI::Option* option, std::int64_t min) {
  return takes_range(option, min, kCountMax);
}

CLI::Option* takes_port(CLI::Option* option) { return takes_range(option, 0, kPortMax); }

CLI::Option* takes_number(CLI::Option* option) {
  return check(option, "X", [](const std::string& text) -> std::string {
    const auto value = parse_number<double>(text);
    if (value && std::isfinite(*value)) return "";
    return "takes a number, not '" + text + "'";
  });
}

CLI::Option* takes_amount(CLI::Option* option) {
  return check(option, "X", [](const std::string& text) -> std::string {
    const auto value = parse_number<double>(text);
    if (value && std::isfinite(*value) && *value >= 0.0) return "";
    return "takes a number from 0, not '" + text + "'";
  });
}

CLI::Option* takes_file(CLI::Option* option) { return option->type_name("FILE"); }

CLI::Option* takes_one_of(CLI::Option* option, const std::vector<std::string>& words) {
  return check(option, "WORD", [words](const std::string& text) -> std::string {
    if (std::find(words.begin(), words.end(), text) != words.end()) return "";
    std::string list;
    for (const std::string& word : words) list += (list.empty() ? "" : ", ") + word;
    return "takes one of " + list + ", not '" + text + "'";
  });
}

CLI::Option* takes(CLI::Option* option, const char* kind) { return option->type_name(kind); }

}  // namespace speedo
