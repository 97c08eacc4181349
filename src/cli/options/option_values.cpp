#include "cli/options/option_values.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

namespace speedo {

OptionValues::OptionValues(Program program) : program_(program) {
  for (const Option* option : options_of(program)) {
    OptionValue value{.option = option};
    if (!option->value.empty()) value.texts.emplace_back(option->value);
    values_.push_back(std::move(value));
  }
}

void OptionValues::set(OptionValue value) {
  const auto place = std::find_if(values_.begin(), values_.end(), [&](const OptionValue& each) {
    return each.option == value.option;
  });
  SPEEDO_ASSERT(place != values_.end());
  if (place->source > value.source) return;
  *place = std::move(value);
}

bool OptionValues::given(std::string_view name) const {
  return source_of(name) != Source::kDefault;
}

Source OptionValues::source_of(std::string_view name) const {
  const OptionValue* value = find(name);
  return value == nullptr ? Source::kDefault : value->source;
}

std::string OptionValues::origin_elsewhere(std::string_view name) const {
  const OptionValue* value = find(name);
  return value != nullptr && value->source != Source::kFlag ? value->origin : "";
}

Result<void> OptionValues::refuse_given(std::initializer_list<std::string_view> names,
                                        std::string_view here) const {
  for (const std::string_view name : names) {
    const OptionValue* value = find(name);
    if (value == nullptr || value->source != Source::kFlag) continue;
    return usage_error(fmt::format("--{} means nothing {}: leave it out", name, here));
  }
  return {};
}

const OptionValue* OptionValues::find(std::string_view name) const {
  for (const OptionValue& value : values_) {
    if (value.option->name == name) return &value;
  }
  SPEEDO_ASSERT(std::any_of(option_table().begin(), option_table().end(),
                            [&](const Option& option) { return option.name == name; }));
  return nullptr;
}

std::vector<std::string> OptionValues::arguments_for(Program other) const {
  std::vector<std::string> arguments;
  for (const OptionValue& value : values_) {
    if (value.source == Source::kDefault || value.option->place != OptionPlace::kFlag) continue;
    if (find_option(value.option->name, other) == nullptr) continue;
    std::string argument = "--" + std::string(value.option->name);
    if (value.option->type.kind != ValueKind::kSwitch) {
      argument += "=" + value.texts.front();
    } else if (value.texts.front() != "true") {
      continue;
    }
    arguments.push_back(std::move(argument));
  }
  return arguments;
}

}  // namespace speedo
