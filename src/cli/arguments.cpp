#include "cli/arguments.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>

#include "base/edit_distance.hpp"

namespace speedo {

namespace {

// A flag argument taken apart: "--name=value".
struct Flag {
  std::string name;
  std::string value;
  bool has_value = false;
};

Flag take_apart(const std::string& argument) {
  const std::size_t start = argument[1] == '-' ? 2 : 1;
  const std::size_t equals = argument.find('=', start);
  if (equals == std::string::npos) return {argument.substr(start), "", false};
  return {argument.substr(start, equals - start), argument.substr(equals + 1), true};
}

const FlagName* find(const std::vector<FlagName>& known, std::string_view name) {
  const std::string wanted = squash(name);
  const auto place = std::find_if(known.begin(), known.end(), [&](const FlagName& flag) {
    return squash(flag.name) == wanted;
  });
  return place == known.end() ? nullptr : &*place;
}

Error unknown_flag(const std::string& argument, const Flag& flag,
                   const std::vector<FlagName>& known) {
  std::vector<std::string> names;
  for (const FlagName& each : known) names.push_back(each.name);
  const std::string near = nearest(flag.name, names);
  const std::string written = argument.substr(0, argument.find('='));
  return {ErrorCode::kUsage, "unknown flag '" + written + "'" +
                                 (near.empty() ? "" : ", did you mean --" + near + "?") +
                                 " (--help lists all flags)"};
}

}  // namespace

bool looks_like_flag(const std::string& argument) {
  if (argument.size() < 2 || argument[0] != '-') return false;
  const std::size_t start = argument[1] == '-' ? 2 : 1;
  return start < argument.size() && std::isalpha(static_cast<unsigned char>(argument[start])) != 0;
}

std::string squash(std::string_view flag) {
  std::string result;
  for (const char c : flag) {
    if (c == '-' || c == '_') continue;
    result.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(c))));
  }
  return result;
}

std::string nearest(std::string_view word, const std::vector<std::string>& candidates) {
  const std::string wanted = squash(word);
  std::string best;
  std::size_t best_distance = std::max<std::size_t>(2, wanted.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t distance = edit_distance(wanted, squash(candidate));
    if (distance < best_distance) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::vector<std::string> squashed_flags(const std::vector<std::string>& arguments) {
  std::vector<std::string> names;
  for (const std::string& argument : arguments) {
    if (argument == "--") break;
    if (looks_like_flag(argument)) names.push_back(squash(argument.substr(0, argument.find('='))));
  }
  return names;
}

std::vector<std::string> fold_words(const std::vector<std::string>& arguments,
                                    std::string_view name, std::size_t words_max) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    result.push_back(arguments[i]);
    if (arguments[i] == "--") {
      result.insert(result.end(), arguments.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                    arguments.end());
      break;
    }
    const std::size_t equals = arguments[i].find('=');
    if (!looks_like_flag(arguments[i]) || squash(arguments[i].substr(0, equals)) != name) continue;
    std::size_t words = equals == std::string::npos ? 0 : 1;
    while (words < words_max && i + 1 < arguments.size() && !looks_like_flag(arguments[i + 1])) {
      result.back() += (words == 0 ? "=" : " ") + arguments[++i];
      ++words;
    }
  }
  return result;
}

Result<std::vector<std::string>> normalize_arguments(const std::vector<std::string>& raw,
                                                     const std::vector<FlagName>& known) {
  std::vector<std::string> result;
  for (std::size_t i = 0; i < raw.size(); ++i) {
    if (raw[i] == "--") {
      result.insert(result.end(), raw.begin() + static_cast<std::ptrdiff_t>(i), raw.end());
      break;
    }
    if (!looks_like_flag(raw[i])) {
      result.push_back(raw[i]);
      continue;
    }
    Flag flag = take_apart(raw[i]);
    const FlagName* name = find(known, flag.name);
    if (name == nullptr) return unknown_flag(raw[i], flag, known);
    if (!flag.has_value && name->takes_value) {
      const bool next_is_flag = i + 1 < raw.size() && looks_like_flag(raw[i + 1]) &&
                                find(known, take_apart(raw[i + 1]).name) != nullptr;
      if (i + 1 == raw.size() || next_is_flag) {
        return Error{ErrorCode::kUsage, "flag --" + name->name + " needs a value"};
      }
      flag.value = raw[++i];
      flag.has_value = true;
    }
    result.push_back("--" + name->name + (flag.has_value ? "=" + flag.value : ""));
  }
  return result;
}

}  // namespace speedo
