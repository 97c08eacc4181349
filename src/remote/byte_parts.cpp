#include "remote/byte_parts.hpp"

#include <algorithm>

#include <speedo/base/assert.hpp>

#include "base/parse_number.hpp"

namespace speedo {

ByteParts::ByteParts(std::uint64_t bytes, std::uint64_t part_bytes)
    : bytes_(bytes), part_bytes_(part_bytes) {
  SPEEDO_ASSERT(part_bytes > 0);
  states_.resize(static_cast<std::size_t>(bytes / part_bytes + (bytes % part_bytes > 0 ? 1 : 0)));
}

ByteSpan ByteParts::span(std::size_t part) const {
  SPEEDO_ASSERT(part < states_.size());
  const std::uint64_t begin = part * part_bytes_;
  return {begin, begin + std::min(part_bytes_, bytes_ - begin)};
}

std::uint64_t ByteParts::bytes_there() const {
  std::uint64_t sum = 0;
  for (std::size_t part = 0; part < states_.size(); ++part) {
    if (is_there(part)) sum += span(part).bytes();
  }
  return sum;
}

std::optional<std::size_t> ByteParts::take() {
  const auto found = std::find(states_.begin(), states_.end(), State::kMissing);
  if (found == states_.end()) return std::nullopt;
  *found = State::kTaken;
  return static_cast<std::size_t>(found - states_.begin());
}

std::optional<ContentRange> parse_content_range(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  if (!text.starts_with(kUnit)) return std::nullopt;
  text.remove_prefix(kUnit.size());
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  ContentRange range;
  if (const std::string_view total = text.substr(slash + 1); total != "*") {
    range.total = parse_number<std::uint64_t>(total);
    if (!range.total) return std::nullopt;
  }
  const std::string_view span = text.substr(0, slash);
  if (span == "*") return range;
  const std::size_t dash = span.find('-');
  if (dash == std::string_view::npos) return std::nullopt;
  const auto first = parse_number<std::uint64_t>(span.substr(0, dash));
  const auto last = parse_number<std::uint64_t>(span.substr(dash + 1));
  if (!first || !last || *last < *first || *last == UINT64_MAX) return std::nullopt;
  range.span = {*first, *last + 1};
  if (range.total && range.span.end > *range.total) return std::nullopt;
  return range;
}

}  // namespace speedo
