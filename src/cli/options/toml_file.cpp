#include "cli/options/toml_file.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/file.hpp>

#include "cli/exit_code.hpp"
#include "cli/options/own_file.hpp"

namespace speedo {

namespace {

constexpr std::size_t kTomlBytesMax = std::size_t{1} << 20U;

const char* wanted_toml(ValueKind kind) {
  switch (kind) {
    case ValueKind::kSwitch: return "true or false";
    case ValueKind::kWhole:
    case ValueKind::kThreads: return "a whole number";
    case ValueKind::kNumber:
    case ValueKind::kAmount:
    case ValueKind::kPositive: return "a number";
    case ValueKind::kSeconds: return "a number of seconds, or a text as \"90s\", \"5m\", \"2h\"";
    case ValueKind::kBytes: return "a number of bytes, or a text as \"500MB\", \"20GiB\"";
    case ValueKind::kWord:
    case ValueKind::kFile:
    case ValueKind::kText: return "a text";
    case ValueKind::kOptionalText: return "true, or a text";
  }
  return "a text";
}

bool is_textual(ValueKind kind) {
  return kind == ValueKind::kWord || kind == ValueKind::kFile || kind == ValueKind::kText ||
         kind == ValueKind::kOptionalText || kind == ValueKind::kSeconds ||
         kind == ValueKind::kBytes;
}

bool is_numeric(ValueKind kind) {
  return kind == ValueKind::kNumber || kind == ValueKind::kAmount || kind == ValueKind::kPositive;
}

// Texts with commas between them; nothing if one is none.
std::optional<std::string> joined_texts(const toml::array& array) {
  std::string result;
  for (const toml::node& node : array) {
    const auto* word = node.as_string();
    if (word == nullptr) return std::nullopt;
    result += (result.empty() ? "" : ",") + word->get();
  }
  return result;
}

std::optional<std::string> toml_text(const toml::node& value, const ValueType& type) {
  const ValueKind kind = type.kind;
  if (const auto* word = value.as_string(); word != nullptr && is_textual(kind)) return word->get();
  if (const auto* array = value.as_array(); array != nullptr && is_textual(kind)) {
    return joined_texts(*array);
  }
  if (const auto* whole = value.as_integer();
      whole != nullptr && kind != ValueKind::kSwitch && kind != ValueKind::kWord &&
      kind != ValueKind::kFile) {
    return std::to_string(whole->get());
  }
  if (const auto* number = value.as_floating_point(); number != nullptr && is_numeric(kind)) {
    return fmt::format("{}", number->get());
  }
  if (const auto* is_on = value.as_boolean()) {
    if (kind == ValueKind::kSwitch) return is_on->get() ? "true" : "false";
    if (kind == ValueKind::kOptionalText && is_on->get()) return std::string(type.implied);
  }
  return std::nullopt;
}

Result<toml::table> parse_content(const Result<std::string>& content, const std::string& path,
                                  const std::string& name) {
  if (!content) {
    return Error{unless_refused(content.error().code, ErrorCode::kConfig),
                 name + ": " + content.error().message};
  }
  return parse_toml(*content, path);
}

}  // namespace

Result<toml::table> read_toml_file(const std::string& path, const std::string& name) {
  return parse_content(read_file(path, kTomlBytesMax), path, name);
}

Result<toml::table> read_own_toml_file(const std::string& path, const std::string& name) {
  return parse_content(read_own_file(path, kTomlBytesMax), path, name);
}

std::vector<TomlEntry> entries_of(const toml::table& table, const std::string& path) {
  struct Written {
    toml::source_position at;
    TomlEntry entry;
  };
  std::vector<Written> written;
  for (auto&& [key, value] : table) {
    const toml::source_position at = key.source().begin;
    written.push_back({at, {std::string(key.str()), &value, place_of(path, at)}});
  }
  std::sort(written.begin(), written.end(), [](const Written& one, const Written& other) {
    return std::pair(one.at.line, one.at.column) < std::pair(other.at.line, other.at.column);
  });
  std::vector<TomlEntry> entries;
  for (Written& each : written) entries.push_back(std::move(each.entry));
  return entries;
}

Result<std::string> option_text(const TomlEntry& entry, const Option& option) {
  if (auto text = toml_text(*entry.value, option.type)) return std::move(*text);
  std::string message = entry.place + ": '" + entry.key + "'";
  if (entry.key != option.name) message += " (--" + std::string(option.name) + ")";
  message += std::string(" takes ") + wanted_toml(option.type.kind);
  if (const auto* word = entry.value->as_string()) message += ", not '" + word->get() + "'";
  return Error{ErrorCode::kConfig, std::move(message)};
}

}  // namespace speedo
