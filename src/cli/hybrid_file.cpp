// A file of stages, as `--hybrid-file` takes it:
//
//   [[stage]]
//   max-iter = 100
//   strategy = "sync"
//
//   [[stage]]
//   max-iter = 300
//   drop = 3

#include <algorithm>
#include <cctype>
#include <set>

#include <CLI/CLI.hpp>
#define TOML_EXCEPTIONS 0
#include <toml++/toml.h>

#include <speedo/base/file.hpp>
#include <speedo/train/strategy.hpp>

#include "base/log.hpp"
#include "cli/arguments.hpp"
#include "cli/command_line.hpp"
#include "cli/exit_code.hpp"
#include "cli/hybrid.hpp"

namespace speedo {

namespace {

constexpr std::size_t kHybridBytesMax = std::size_t{1} << 20U;
constexpr std::size_t kStagesMax = 1000;

// Where something stands in a file.
std::string place_of(const std::string& path, const toml::source_position& at) {
  return fmt::format("{}:{}:{}", path, at.line, at.column);
}

Error bad(const std::string& place, const std::string& what) {
  return {ErrorCode::kConfig, place + ": " + what};
}

// The key and its value as a command-line argument; empty for a switch that is off.
Result<std::string> as_argument(const std::string& key, const toml::node& value,
                                const std::string& place) {
  const std::string flag = "--" + key;
  if (const auto* word = value.as_string()) return flag + "=" + word->get();
  if (const auto* number = value.as_integer()) return flag + "=" + std::to_string(number->get());
  if (const auto* number = value.as_floating_point()) {
    return fmt::format("{}={}", flag, number->get());
  }
  if (const auto* is_on = value.as_boolean()) return is_on->get() ? flag : std::string();
  return bad(place, "'" + key + "' takes a text, a number, true or false");
}

bool is_flag_name(const std::string& name) {
  for (const char c : name) {
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '-' && c != '_') return false;
  }
  return !name.empty() && name[0] != '-';
}

// The option that a key sets, in whatever spelling; none if it is unknown.
const CLI::Option* option_of(const CLI::App& app, const std::string& name) {
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& spelling : option->get_lnames()) {
      if (squash(spelling) == squash(name)) return option;
    }
  }
  return nullptr;
}

Result<void> check_strategy_name(const std::string& name, const std::string& place) {
  // Of "hybrid" the schedule says more.
  if (name.empty() || name == "hybrid" || find_strategy(name) != nullptr) return {};
  StrategyOptions options;
  options.name = name;
  return bad(place, "--strategy " + name + ": " + make_strategy(options).error().message);
}

// `set` holds the options that keys before this one have set.
Result<void> read_key(const std::string& path, const toml::key& key, const toml::node& value,
                      ScheduleFlags& flags, std::set<std::string>& set) {
  const std::string place = place_of(path, key.source().begin);
  const std::string name(key.str());
  if (!is_flag_name(name)) return bad(place, "'" + name + "' is no flag");
  SPEEDO_ASSIGN(const std::string argument, as_argument(name, value, place));
  // A switch that is off changes nothing, but must be one.
  ScheduleFlags unchanged;
  CLI::App app("stage", "stage");
  add_schedule_flags(app, argument.empty() ? unchanged : flags, FlagScope::kStage);
  if (const CLI::Option* option = option_of(app, name); option != nullptr) {
    const std::string canonical = option->get_name();
    if (!set.insert(canonical).second) return bad(place, "'" + name + "' is given twice");
    const bool is_switch = option->get_items_expected_max() == 0;
    if (is_switch && canonical != "--help" && !value.is_boolean()) {
      return bad(place, "'" + name + "' takes true or false");
    }
  }
  if (auto read = parse_flags(app, {argument.empty() ? "--" + name : argument}); !read) {
    return bad(place, read.error().message);
  }
  return check_strategy_name(flags.strategy, place);
}

Result<HybridStage> read_stage(const std::string& path, const toml::node& node,
                               std::size_t number) {
  HybridStage stage;
  stage.place =
      fmt::format("{}, stage {}", place_of(path, node.source().begin), number);
  const toml::table* table = node.as_table();
  if (table == nullptr) return bad(stage.place, "a stage is a table, written [[stage]]");
  // A table is sorted by name; of two keys for one flag the second as written is the wrong one.
  std::vector<std::pair<const toml::key*, const toml::node*>> written;
  for (auto&& [key, value] : *table) written.emplace_back(&key, &value);
  std::sort(written.begin(), written.end(), [](const auto& one, const auto& other) {
    const toml::source_position& a = one.first->source().begin;
    const toml::source_position& b = other.first->source().begin;
    return std::pair(a.line, a.column) < std::pair(b.line, b.column);
  });
  std::set<std::string> set;
  for (const auto& [key, value] : written) {
    SPEEDO_TRY(read_key(path, *key, *value, stage.flags, set));
  }
  return stage;
}

}  // namespace

Result<std::vector<HybridStage>> read_hybrid_file(const std::string& path) {
  auto content = read_file(path, kHybridBytesMax);
  if (!content) {
    return Error{unless_refused(content.error().code, ErrorCode::kConfig),
                 "--hybrid-file " + path + ": " + content.error().message};
  }
  const toml::parse_result parsed = toml::parse(*content, path);
  if (!parsed) {
    return bad(place_of(path, parsed.error().source().begin),
               std::string(parsed.error().description()));
  }
  std::vector<HybridStage> stages;
  for (auto&& [key, value] : parsed.table()) {
    const std::string place = place_of(path, key.source().begin);
    if (key.str() != "stage") {
      return bad(place, "unknown key '" + std::string(key.str()) +
                            "': stages are tables written [[stage]]");
    }
    const toml::array* all = value.as_array();
    if (all == nullptr) return bad(place, "write [[stage]], with two brackets, for each stage");
    if (all->size() > kStagesMax) return bad(place, "more than 1000 stages");
    for (const toml::node& node : *all) {
      SPEEDO_ASSIGN(HybridStage stage, read_stage(path, node, stages.size() + 1));
      stages.push_back(std::move(stage));
    }
  }
  if (stages.empty()) return bad(path, "no [[stage]] in this file");
  return stages;
}

}  // namespace speedo
