#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>
#include <speedo/cpu/cpu_options.hpp>

#include "base/parse_number.hpp"
#include "cli/options/number_unit.hpp"
#include "cli/options/option.hpp"

namespace speedo {

namespace {

using Refusal = std::optional<std::string>;

std::string but_not(const std::string& text) { return ", not '" + text + "'"; }

Refusal check_whole(std::int64_t min, std::int64_t max, const char* what_max,
                    const std::string& text) {
  const auto value = parse_number<std::int64_t>(text);
  if (value && *value >= min && *value <= max) return std::nullopt;
  return fmt::format("takes a whole number from {} to {}{}", min, max, what_max) + but_not(text);
}

// Many of these numbers become floats.
bool fits_float(double value) {
  using Float = std::numeric_limits<float>;
  const double size = std::abs(value);
  return size == 0.0 || (size >= Float::min() && size <= Float::max());
}

Refusal check_number(const ValueType& type, const std::string& text) {
  const bool is_positive = type.kind == ValueKind::kPositive;
  const bool is_amount = type.kind == ValueKind::kAmount;
  const char* what = is_positive ? "a number above 0" : is_amount ? "a number from 0" : "a number";
  const auto value = parse_number<double>(text);
  const bool is_right = value && std::isfinite(*value) && (!is_positive || *value > 0.0) &&
                        (!is_amount || *value >= 0.0);
  if (!is_right) return std::string("takes ") + what + but_not(text);
  if (fits_float(*value)) return std::nullopt;
  return std::string("takes ") + what + " that a float can hold (1.2e-38 to 3.4e38" +
         (is_positive ? ")" : ", or 0)") + but_not(text);
}

Refusal check_word(std::string_view words, const std::string& text) {
  std::string list;
  for (const std::string_view word : words_of(words)) {
    if (text == word) return std::nullopt;
    list += (list.empty() ? "" : ", ") + std::string(word);
  }
  return "takes one of " + list + but_not(text);
}

// "90", "90s", "5m", "2h".
std::optional<std::int64_t> parse_seconds(std::string_view text) {
  std::int64_t factor = 1;
  if (!text.empty()) {
    const char unit = text.back();
    factor = unit == 'h' ? 3600 : unit == 'm' ? 60 : 1;
    if (unit == 'h' || unit == 'm' || unit == 's') text.remove_suffix(1);
  }
  const auto value = parse_number<std::int64_t>(text);
  if (!value || *value < 0 || *value > kCountMax) return std::nullopt;
  return *value * factor;
}

Refusal check_seconds(const ValueType& type, const std::string& text) {
  const auto value = parse_seconds(text);
  if (value && *value >= type.min && *value <= type.max) return std::nullopt;
  return fmt::format("takes a whole number from {} to {}, in seconds or as 90s, 5m, 2h", type.min,
                     type.max) +
         but_not(text);
}

constexpr std::array<NumberUnit, 8> kByteUnits{{{"kB", 1e3},
                                                {"MB", 1e6},
                                                {"GB", 1e9},
                                                {"TB", 1e12},
                                                {"KiB", 1024.0},
                                                {"MiB", 1048576.0},
                                                {"GiB", 1073741824.0},
                                                {"TiB", 1099511627776.0}}};

// "0", "500MB", "1.5GB", "20GiB".
std::optional<std::int64_t> parse_bytes(std::string_view text) {
  constexpr double kBytesMax = 9e18;
  const double factor = take_unit(text, kByteUnits).value_or(1.0);
  const auto value = parse_number<double>(text);
  if (!value || !(*value >= 0.0) || *value * factor > kBytesMax) return std::nullopt;
  return static_cast<std::int64_t>(*value * factor);
}

Refusal check_bytes(const std::string& text) {
  if (parse_bytes(text)) return std::nullopt;
  return "takes a number of bytes, or one with its unit, kB, MB, GB, TB, KiB, MiB, GiB or TiB, as "
         "in 20GB" + but_not(text);
}

}  // namespace

std::optional<bool> parse_switch(std::string_view text) {
  for (const char* on : {"true", "1", "yes", "on"}) {
    if (text == on) return true;
  }
  for (const char* off : {"false", "0", "no", "off"}) {
    if (text == off) return false;
  }
  return std::nullopt;
}

std::optional<std::string> value_error(const Option& option, const std::string& text) {
  const ValueType& type = option.type;
  switch (type.kind) {
    case ValueKind::kSwitch:
      if (parse_switch(text)) return std::nullopt;
      return "takes true or false" + but_not(text);
    case ValueKind::kWhole: return check_whole(type.min, type.max, "", text);
    case ValueKind::kThreads:
      return check_whole(type.min, default_threads(),
                         " (what this process may use: affinity, cgroup, OPENBLAS_NUM_THREADS)",
                         text);
    case ValueKind::kNumber:
    case ValueKind::kAmount:
    case ValueKind::kPositive: return check_number(type, text);
    case ValueKind::kSeconds: return check_seconds(type, text);
    case ValueKind::kBytes: return check_bytes(text);
    case ValueKind::kWord: return check_word(type.words, text);
    case ValueKind::kText:
      if (static_cast<std::int64_t>(text.size()) >= type.min) return std::nullopt;
      return "takes a " + std::string(type.label) + but_not(text);
    case ValueKind::kOptionalText:
      if (!text.empty()) return std::nullopt;
      return "takes " + std::string(type.label) + but_not(text);
    case ValueKind::kFile: return std::nullopt;
  }
  return std::nullopt;
}

std::string canonical_value(const Option& option, const std::string& text) {
  SPEEDO_ASSERT(!value_error(option, text));
  if (option.type.kind == ValueKind::kSeconds) return std::to_string(*parse_seconds(text));
  if (option.type.kind == ValueKind::kBytes) return std::to_string(*parse_bytes(text));
  if (option.type.kind == ValueKind::kSwitch) return *parse_switch(text) ? "true" : "false";
  return text;
}

}  // namespace speedo
