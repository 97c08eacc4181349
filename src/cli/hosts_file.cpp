#include "cli/hosts_file.hpp"

#include <algorithm>
#include <cctype>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/file.hpp>

#include "base/byte_order_mark.hpp"
#include "base/parse_number.hpp"
#include "cli/arguments.hpp"
#include "cli/exit_code.hpp"
#include "cli/quoted_words.hpp"

namespace speedo {
namespace {

constexpr std::size_t kHostsBytesMax = std::size_t{1} << 20U;
constexpr std::uint64_t kHostWorkersMax = 1024;
constexpr int kThreadsMax = 65536;

using Words = std::vector<std::string>;

const std::map<std::string, std::string>& other_names() {
  static const std::map<std::string, std::string> all = {{"slots", "workers"},
                                                         {"directory", "folder"}};
  return all;
}

// What is wrong with a line; nothing if it is right.
using Fault = std::optional<std::string>;

// "user@host:port", "user@[::1]:port". A name that begins with a dash would be an option of ssh,
// one with a slash the log of another folder.
Fault read_name(const std::string& word, Host& host) {
  std::string name = word;
  const std::size_t bracket = name.rfind(']');
  const std::size_t colon = name.rfind(':');
  const bool has_port = colon != std::string::npos &&
                        (bracket != std::string::npos ? colon > bracket
                                                      : name.find(':') == colon);
  if (has_port) {
    const auto port = parse_number<std::uint16_t>(std::string_view(name).substr(colon + 1));
    if (!port || *port == 0) return "'" + name.substr(colon + 1) + "' is no port";
    host.port = *port;
    name.resize(colon);
  }
  std::erase_if(name, [](char c) { return c == '[' || c == ']'; });
  const bool is_name = !name.empty() && name.front() != '-' &&
                       name.find_first_of("='\"$`;&|<>()\\/ ") == std::string::npos &&
                       name.back() != '@' && name.front() != '@';
  if (!is_name) return "'" + word + "' is no host: a line begins with [user@]host[:port]";
  host.name = name;
  return std::nullopt;
}

Fault read_count(const std::string& key, const std::string& text, std::uint64_t most,
                 std::uint64_t& value) {
  const auto number = parse_number<std::uint64_t>(text);
  if (!number || *number == 0 || *number > most) {
    return fmt::format("{} takes a whole number from 1 to {}, not '{}'", key, most, text);
  }
  value = *number;
  return std::nullopt;
}

std::string key_of(const std::string& setting) {
  const std::string key = setting.substr(0, setting.find('='));
  const auto other = other_names().find(key);
  return other != other_names().end() ? other->second : key;
}

Fault read_setting(const std::string& word, Host& host) {
  const std::size_t equals = word.find('=');
  if (equals == std::string::npos) {
    return "'" + word + "' is no setting: KEY=VALUE, such as workers=2 (one host a line)";
  }
  const std::string key = key_of(word);
  const std::string value = word.substr(equals + 1);
  if (value.empty()) return key + " has no value";
  if (key == "workers") return read_count(key, value, kHostWorkersMax, host.workers);
  if (key == "threads") {
    std::uint64_t threads = 0;
    const Fault fault = read_count(key, value, kThreadsMax, threads);
    host.threads = static_cast<int>(threads);
    return fault;
  }
  if (key == "folder") {
    host.folder = value;
  } else if (key == "program") {
    host.program = value;
  } else {
    const std::string near = nearest(key, {"workers", "slots", "threads", "folder", "directory",
                                           "program"});
    return "unknown setting '" + key + "'" + (near.empty() ? "" : ", did you mean " + near + "?") +
           " (there are workers, threads, folder and program)";
  }
  return std::nullopt;
}

Fault read_line(const std::string& line, std::optional<Host>& host) {
  Words words;
  if (const Fault fault = split_quoted_words(line, words)) return fault;
  if (words.empty()) return std::nullopt;
  host.emplace();
  if (const Fault fault = read_name(words[0], *host)) return fault;
  std::set<std::string> keys;
  for (std::size_t i = 1; i < words.size(); ++i) {
    if (const Fault fault = read_setting(words[i], *host)) return fault;
    const std::string key = key_of(words[i]);
    if (!keys.insert(key).second) return key + " is given twice";
  }
  const bool is_too_few = host->threads != 0 &&
                          static_cast<std::uint64_t>(host->threads) < host->workers;
  if (is_too_few) return "fewer threads than workers: each needs one at least";
  return std::nullopt;
}

}  // namespace

Result<std::vector<Host>> read_hosts_file(const std::string& path) {
  auto content = read_file(path, kHostsBytesMax);
  if (!content) {
    return Error{unless_refused(content.error().code, ErrorCode::kConfig),
                 "--hosts " + path + ": " + content.error().message};
  }
  std::vector<Host> hosts;
  std::map<std::pair<std::string, std::uint16_t>, int> lines;  // of each host
  std::istringstream stream{std::string(without_byte_order_mark(*content))};
  int number = 0;
  for (std::string line; std::getline(stream, line);) {
    ++number;
    std::optional<Host> host;
    Fault fault = read_line(line, host);
    if (!fault && host) {
      const auto [place, is_new] = lines.emplace(std::pair(host->name, host->port), number);
      if (!is_new) {
        fault = fmt::format("host '{}' is in line {} already; workers=N starts several there",
                            host->name, place->second);
      }
    }
    if (fault) return config_error(fmt::format("{}:{}: {}", path, number, *fault));
    if (host) hosts.push_back(std::move(*host));
  }
  if (hosts.empty()) {
    return config_error("'" + path + "' holds no host: write one a line, [user@]host[:port] "
                        "[workers=N] [threads=N] [folder=PATH] [program=PATH]");
  }
  return hosts;
}

}  // namespace speedo
