#include "main/worker_range.hpp"

#include <charconv>
#include <optional>
#include <system_error>

namespace speedo {

namespace {

// Texts that are numbers only, so that "3x" is not 3.
std::optional<std::uint64_t> whole_number(const std::string& text) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (code != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Result<WorkerRange> parse_workers(const std::string& text) {
  const std::size_t colon = text.find(':');
  const bool is_range = colon != std::string::npos;
  const auto min = whole_number(text.substr(0, colon));
  const auto max = is_range ? whole_number(text.substr(colon + 1)) : min;
  if (!min || !max) return usage_error("--workers takes N or MIN:MAX, not '" + text + "'");
  if (*min < 1 || *max < 1 || *min > kWorkersMax || *max > kWorkersMax) {
    return usage_error("--workers " + text + ": between 1 and " + std::to_string(kWorkersMax));
  }
  if (*min > *max) return usage_error("--workers " + text + ": MIN is greater than MAX");
  if (!is_range) return WorkerRange{*min, 1, 0};
  return WorkerRange{*min, *min, *max};
}

}  // namespace speedo
