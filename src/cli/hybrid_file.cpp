// A file of stages, as `--hybrid-file` takes it:
//
//   [[stage]]
//   max-iter = 100
//   strategy = "sync"
//
//   [[stage]]
//   max-iter = 300
//   drop = 3

#include <set>

#include <fmt/format.h>

#include <speedo/train/strategy.hpp>

#include "cli/arguments.hpp"
#include "cli/hybrid.hpp"
#include "cli/options/option_error.hpp"
#include "cli/options/toml_file.hpp"

namespace speedo {

namespace {

constexpr std::size_t kStagesMax = 1000;

Error bad_stage(const std::string& place, const std::string& what) {
  return {ErrorCode::kConfig, place + ": " + what};
}

Error unknown_stage_flag(const TomlEntry& entry) {
  std::vector<std::string> known;
  for (const Option* option : options_of(Program::kStage)) known.emplace_back(option->name);
  const std::string near = nearest(entry.key, known);
  return bad_stage(entry.place, "unknown flag '" + entry.key + "'" +
                              (near.empty() ? "" : ", did you mean --" + near + "?"));
}

Result<void> check_strategy_name(const std::string& name, const std::string& place) {
  // Of "hybrid" the schedule says more.
  if (name.empty() || name == "hybrid" || find_strategy(name) != nullptr) return {};
  StrategyOptions options;
  options.name = name;
  return bad_stage(place, "--strategy " + name + ": " + make_strategy(options).error().message);
}

// `set` holds the options that keys before this one have set.
Result<void> read_key(const TomlEntry& entry, OptionValues& values, std::set<const Option*>& set) {
  const Option* option = find_option(entry.key, Program::kStage);
  if (option == nullptr) return unknown_stage_flag(entry);
  if (!set.insert(option).second)
    return bad_stage(entry.place, "'" + entry.key + "' is given twice");
  SPEEDO_ASSIGN(const std::string text, option_text(entry, *option));
  const std::string name = "--" + std::string(option->name);
  SPEEDO_TRY(check_value(*option, text, entry.place + ": " + name, ErrorCode::kConfig));
  if (option->name == "strategy") SPEEDO_TRY(check_strategy_name(text, entry.place));
  values.set({.option = option,
              .texts = {canonical_value(*option, text)},
              .source = Source::kFile,
              .origin = entry.place});
  return {};
}

Result<HybridStage> read_stage(const std::string& path, const toml::node& node,
                               std::size_t number) {
  HybridStage stage;
  stage.place = fmt::format("{}, stage {}", place_of(path, node.source().begin), number);
  const toml::table* table = node.as_table();
  if (table == nullptr) return bad_stage(stage.place, "a stage is a table, written [[stage]]");
  OptionValues values(Program::kStage);
  std::set<const Option*> set;
  for (const TomlEntry& entry : entries_of(*table, path)) SPEEDO_TRY(read_key(entry, values, set));
  stage.flags = schedule_flags(values);
  return stage;
}

}  // namespace

Result<std::vector<HybridStage>> read_hybrid_file(const std::string& path) {
  SPEEDO_ASSIGN(const toml::table table, read_toml_file(path, "--hybrid-file " + path));
  std::vector<HybridStage> stages;
  for (const TomlEntry& entry : entries_of(table, path)) {
    if (entry.key != "stage") {
      return bad_stage(entry.place,
                 "unknown key '" + entry.key + "': stages are tables written [[stage]]");
    }
    const toml::array* all = entry.value->as_array();
    if (all == nullptr)
      return bad_stage(entry.place, "write [[stage]], with two brackets, for each stage");
    if (all->size() > kStagesMax) return bad_stage(entry.place, "more than 1000 stages");
    for (const toml::node& node : *all) {
      SPEEDO_ASSIGN(HybridStage stage, read_stage(path, node, stages.size() + 1));
      stages.push_back(std::move(stage));
    }
  }
  if (stages.empty()) return bad_stage(path, "no [[stage]] in this file");
  return stages;
}

}  // namespace speedo
