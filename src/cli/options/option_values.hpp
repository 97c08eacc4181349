#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <speedo/base/assert.hpp>
#include <speedo/base/result.hpp>

#include "base/parse_number.hpp"
#include "cli/options/option.hpp"

namespace speedo {

// Where a value comes from: kSection is the table of a file that is the program's own. A later one
// overrides those before it.
enum class Source : std::uint8_t { kDefault, kFile, kSection, kEnvironment, kFlag };

struct OptionValue {
  const Option* option = nullptr;
  std::vector<std::string> texts = {};  // checked, and canonical; none: there is no value
  Source source = Source::kDefault;
  std::string origin = {};  // "--max-iter", "SPEEDO_MAX_ITER", "speedo.toml:3:1"
};

// What the options of one program come to.
class OptionValues {
 public:
  // Those that hold when the user says nothing.
  explicit OptionValues(Program program);

  Program program() const { return program_; }
  const std::vector<OptionValue>& all() const { return values_; }

  // Gives the option a value, unless it has one of a source that goes before. Requires: it is one
  // of this program's, and value_error() has nothing against the texts.
  void set(OptionValue value);

  // Whether the user has said something, by whatever source.
  bool given(std::string_view name) const;
  // Where the value comes from; kDefault also if another program than this has the option.
  Source source_of(std::string_view name) const;
  // What gives the value, if that is not the command line: "speedo.toml:3:1"; else empty.
  std::string origin_elsewhere(std::string_view name) const;
  // Error: kUsage if one of these was given on the command line, though it means nothing `here`
  // ("without --model"). Files and SPEEDO_ variables are for several programs.
  Result<void> refuse_given(std::initializer_list<std::string_view> names,
                            std::string_view here) const;

  // Stores the value in `variable`, which stays as it is if there is none, or if another program
  // than this has the option. Requires: there is an option of that name.
  template <class T>
  void get(std::string_view name, T& variable) const {
    const OptionValue* value = find(name);
    if (value != nullptr && !value->texts.empty()) convert(value->texts, variable);
  }

  // What the user has given of the options that `other` has as well, as its command line.
  std::vector<std::string> arguments_for(Program other) const;

 private:
  const OptionValue* find(std::string_view name) const;

  static void convert(const std::vector<std::string>& texts, std::vector<std::string>& variable) {
    variable = texts;
  }
  static void convert(const std::vector<std::string>& texts, std::string& variable) {
    variable = texts.front();
  }
  static void convert(const std::vector<std::string>& texts, bool& variable) {
    variable = texts.front() == "true";
  }
  template <class T>
  static void convert(const std::vector<std::string>& texts, std::optional<T>& variable) {
    T value{};
    convert(texts, value);
    variable = value;
  }
  template <class T>
  static void convert(const std::vector<std::string>& texts, T& variable) {
    static_assert(std::is_arithmetic_v<T>);
    const auto value = parse_number<T>(texts.front());
    SPEEDO_ASSERT(value);
    variable = *value;
  }

  Program program_;
  std::vector<OptionValue> values_;  // one for each option, in the table's order
};

}  // namespace speedo
