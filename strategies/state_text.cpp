#include "state_text.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <vector>

namespace speedo {

namespace {

// Cuts the first line off `text`, without its newline. None if there is no whole line.
std::optional<std::string_view> take_line(std::string_view& text) {
  const std::size_t end = text.find('\n');
  if (end == std::string_view::npos) return std::nullopt;
  const std::string_view line = text.substr(0, end);
  text.remove_prefix(end + 1);
  return line;
}

// "key 1 5 9" with ascending numbers.
std::optional<WorkerSet> parse_line(std::string_view line, std::string_view key) {
  if (!line.starts_with(key)) return std::nullopt;
  line.remove_prefix(key.size());
  WorkerSet workers;
  while (!line.empty()) {
    if (line.front() != ' ') return std::nullopt;
    line.remove_prefix(1);
    WorkerId worker;
    const auto [end, error] =
        std::from_chars(line.data(), line.data() + line.size(), worker.value);
    if (error != std::errc()) return std::nullopt;
    if (!workers.empty() && worker <= *workers.rbegin()) return std::nullopt;
    workers.insert(workers.end(), worker);
    line.remove_prefix(static_cast<std::size_t>(end - line.data()));
  }
  return workers;
}

Error corrupt(const char* strategy, const char* line) {
  return {ErrorCode::kCorrupt, std::string("saved state of strategy '") + strategy +
                                   "': line '" + line + "' is missing or malformed"};
}

}  // namespace

std::string save_state(const char* strategy,
                       std::initializer_list<StateLine<const WorkerSet>> lines) {
  std::string text = std::string(strategy) + '\n';
  for (const auto& [key, workers] : lines) {
    text += key;
    for (const WorkerId worker : *workers) text += ' ' + std::to_string(worker.value);
    text += '\n';
  }
  return text;
}

Result<void> restore_state(std::string_view text, const char* strategy,
                           std::initializer_list<StateLine<WorkerSet>> lines) {
  if (take_line(text) != strategy) return corrupt(strategy, strategy);
  std::vector<WorkerSet> parsed;
  for (const auto& [key, workers] : lines) {
    const auto line = take_line(text);
    auto set = line ? parse_line(*line, key) : std::nullopt;
    if (!set) return corrupt(strategy, key);
    parsed.push_back(*std::move(set));
  }
  if (!text.empty()) return corrupt(strategy, "end");
  auto source = parsed.begin();
  for (const auto& [key, workers] : lines) *workers = std::move(*source++);
  return {};
}

}  // namespace speedo
