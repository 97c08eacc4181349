#include "cli/options/option.hpp"

#include <algorithm>

#include "cli/arguments.hpp"
#include "cli/options/option_groups.hpp"

namespace speedo {

namespace {

std::vector<Option> all_options() {
  std::vector<Option> all;
  for (const auto options :
       {job_options(), schedule_options(), cluster_options(), net_options(), data_options(),
        tool_options(), format_options(), simulate_options(), process_options()}) {
    all.insert(all.end(), options.begin(), options.end());
  }
  return all;
}

}  // namespace

const std::vector<Option>& option_table() {
  static const std::vector<Option> all = all_options();
  return all;
}

std::vector<const Option*> options_of(Program program) {
  std::vector<const Option*> result;
  for (const Option& option : option_table()) {
    if (option.programs.contains(program)) result.push_back(&option);
  }
  return result;
}

bool is_called(const Option& option, std::string_view name) {
  const std::string wanted = squash(name);
  const std::vector<std::string_view> names = names_of(option);
  return std::any_of(names.begin(), names.end(),
                     [&](std::string_view each) { return squash(each) == wanted; });
}

const Option* find_option(std::string_view name, Program program) {
  for (const Option* option : options_of(program)) {
    if (is_called(*option, name)) return option;
  }
  return nullptr;
}

std::vector<std::string_view> words_of(std::string_view words) {
  std::vector<std::string_view> result;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    if (end > 0) result.push_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return result;
}

std::vector<std::string_view> names_of(const Option& option) {
  std::vector<std::string_view> names = {option.name};
  for (const std::string_view name : words_of(option.old_names)) names.push_back(name);
  return names;
}

std::string describe(const Option& option) {
  std::string text(option.sentence);
  if (!option.value.empty()) text += " (default " + std::string(option.value) + ")";
  if (!option.otherwise.empty()) text += " (default: " + std::string(option.otherwise) + ")";
  return text;
}

}  // namespace speedo
