#include "cli/worker_range.hpp"

#include <optional>

#include "base/parse_number.hpp"
#include "train/schedule_numbers.hpp"

namespace speedo {

Result<WorkerRange> parse_workers(const std::string& text) {
  const std::size_t colon = text.find(':');
  const bool is_range = colon != std::string::npos;
  const auto min = parse_number<std::uint64_t>(text.substr(0, colon));
  const auto max = is_range ? parse_number<std::uint64_t>(text.substr(colon + 1)) : min;
  if (!min || !max) return usage_error("--workers takes N or MIN:MAX, not '" + text + "'");
  if (*min < 1 || *max < 1 || *min > kWorkersMax || *max > kWorkersMax) {
    return usage_error("--workers " + text + ": between 1 and " + std::to_string(kWorkersMax));
  }
  if (*min > *max) return usage_error("--workers " + text + ": MIN is greater than MAX");
  if (!is_range) return WorkerRange{*min, 1, 0};
  return WorkerRange{*min, *min, *max};
}

}  // namespace speedo
