#pragma once

#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace speedo {

// Who reads options. `speedo simulate` is two: the proof and the planner. A stage of a hybrid reads
// options too, from --hybrid or its file.
enum class Program : std::uint8_t {
  kMaster,
  kWorker,
  kRun,
  kTrain,
  kTest,
  kTime,
  kNet,
  kConvert,
  kMean,
  kConvertImageset,
  kComputeImageMean,
  kUpgradeNetText,
  kUpgradeNetBinary,
  kUpgradeSolverText,
  kExtractFeatures,
  kParseLog,
  kPlotLog,
  kClassify,
  kDrawNet,
  kExport,
  kImport,
  kProof,
  kPlan,
  kDoctor,
  kLaunch,
  kStatus,
  kJobs,
  kDeviceQuery,
  kToken,
  kCert,
  kConfig,
  kCompletion,
  kManual,
  kStage,
};

class Programs {
 public:
  constexpr Programs(std::initializer_list<Program> all) {
    for (const Program program : all) bits_ |= bit(program);
  }
  constexpr bool contains(Program program) const { return (bits_ & bit(program)) != 0; }
  constexpr Programs operator|(Programs other) const {
    Programs both = *this;
    both.bits_ |= other.bits_;
    return both;
  }

 private:
  static constexpr std::uint64_t bit(Program program) {
    return std::uint64_t{1} << static_cast<std::uint8_t>(program);
  }
  std::uint64_t bits_ = 0;
};

enum class ValueKind : std::uint8_t {
  kSwitch,        // on or off
  kWhole,         // a whole number from `min` to `max`
  kThreads,       // a whole number from 1 to the processors that this process may use
  kNumber,        // finite
  kAmount,        // finite and at least 0
  kPositive,      // finite and above 0
  kSeconds,       // whole seconds from `min`, also written 90s, 5m or 2h
  kBytes,         // bytes, also written 500MB, 1.5GB or 20GiB
  kWord,          // one of `words`
  kFile,          // a path
  kText,          // at least `min` letters, of any kind
  kOptionalText,  // anything behind an equals sign, or nothing, which stands for `implied`
};

struct ValueType {
  ValueKind kind = ValueKind::kSwitch;
  std::string_view label = {};  // stands for the value in the help
  std::int64_t min = 0, max = 0;
  std::string_view words = {};  // with blanks between them; of other kinds: suggestions
  std::string_view implied = {};
};

// As large as Caffe's own counters.
inline constexpr std::int64_t kCountMax = 2147483647;

constexpr ValueType on_off() { return {}; }
constexpr ValueType whole(std::int64_t min, std::int64_t max = kCountMax) {
  return {.kind = ValueKind::kWhole, .label = "N", .min = min, .max = max};
}
constexpr ValueType threads() { return {.kind = ValueKind::kThreads, .label = "N", .min = 1}; }
constexpr ValueType number() { return {.kind = ValueKind::kNumber, .label = "X"}; }
constexpr ValueType amount() { return {.kind = ValueKind::kAmount, .label = "X"}; }
constexpr ValueType positive() { return {.kind = ValueKind::kPositive, .label = "X"}; }
constexpr ValueType seconds(std::int64_t min) {
  return {.kind = ValueKind::kSeconds, .label = "SECONDS", .min = min, .max = kCountMax};
}
constexpr ValueType bytes() { return {.kind = ValueKind::kBytes, .label = "SIZE"}; }
constexpr ValueType one_of(std::string_view words) {
  return {.kind = ValueKind::kWord, .label = "WORD", .words = words};
}
constexpr ValueType file() { return {.kind = ValueKind::kFile, .label = "FILE"}; }
constexpr ValueType text(std::string_view label, std::string_view suggestions = {}) {
  return {.kind = ValueKind::kText, .label = label, .words = suggestions};
}
constexpr ValueType filled_text(std::string_view label) {
  return {.kind = ValueKind::kText, .label = label, .min = 1};
}
constexpr ValueType optional_text(std::string_view label, std::string_view implied) {
  return {.kind = ValueKind::kOptionalText, .label = label, .implied = implied};
}

// How an option stands on a command line.
enum class OptionPlace : std::uint8_t {
  kFlag,
  kArgument,   // one argument without a flag
  kArguments,  // all that are left, at least one
};

// One option as users meet it: flag, environment variable, key of a file, line of the manual.
struct Option {
  std::string_view name;            // in kebab case
  std::string_view old_names = {};  // others for the same, with blanks between them
  ValueType type;
  std::string_view unit = {};       // of the value, in the plural
  std::string_view value = {};      // without one from the user; empty: none
  std::string_view otherwise = {};  // in words: what holds then
  Programs programs;                // which may differ in the meaning of a name: then it has rows
  std::string_view group = {};      // of flags, in the help
  std::string_view sentence;
  bool required = false;
  OptionPlace place = OptionPlace::kFlag;
};

// All options, in the order of the help. A program has a name once.
const std::vector<Option>& option_table();

// Whether one of the option's names is this one, in any spelling.
bool is_called(const Option& option, std::string_view name);

// The option of `program` that is called so, in any spelling or by an old name; null if none is.
const Option* find_option(std::string_view name, Program program);
std::vector<const Option*> options_of(Program program);
// The option's name, then its old names.
std::vector<std::string_view> names_of(const Option& option);
std::vector<std::string_view> words_of(std::string_view words);

// What the help says of it: the sentence, and what holds without a value.
std::string describe(const Option& option);

// What is wrong with `text` as the option's value, behind the name of what gives it ("takes a whole
// number from 1 to 5, not '0'"); nothing if it is right.
std::optional<std::string> value_error(const Option& option, const std::string& text);
// The value as a program reads it: seconds and bytes without their unit. Requires: it is right.
std::string canonical_value(const Option& option, const std::string& text);

// A switch's text; nothing if it is neither.
std::optional<bool> parse_switch(std::string_view text);

}  // namespace speedo
