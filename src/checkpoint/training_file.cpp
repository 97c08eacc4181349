#include "checkpoint/training_file.hpp"

#include <charconv>
#include <span>
#include <string_view>

#include <fmt/format.h>

#include "base/log.hpp"

namespace speedo {

namespace {

constexpr std::string_view kHead = "training ";
constexpr std::size_t kWordDigits = 16;
constexpr std::size_t kTrainingBytesMax = 4096;

// 16 hexadecimal digits.
std::optional<std::uint64_t> parse_word(std::string_view digits) {
  std::uint64_t value = 0;
  const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), value, 16);
  if (code != std::errc() || end != digits.data() + digits.size()) return std::nullopt;
  return value;
}

std::optional<TrainingId> parse(std::string_view line) {
  if (!line.starts_with(kHead)) return std::nullopt;
  line.remove_prefix(kHead.size());
  if (line.size() != 2 * kWordDigits + 1 || line.back() != '\n') return std::nullopt;
  const auto high = parse_word(line.substr(0, kWordDigits));
  const auto low = parse_word(line.substr(kWordDigits, kWordDigits));
  if (!high || !low) return std::nullopt;
  return TrainingId{*high, *low};
}

}  // namespace

std::filesystem::path training_file(const std::string& prefix, const std::string& job) {
  return prefix + "." + job + ".training";
}

Result<void> write_training_file(const std::filesystem::path& file, const TrainingId& training,
                                 CheckpointFiles& files) {
  const std::string line = fmt::format("{}{:016x}{:016x}\n", kHead, training.high, training.low);
  return files.write(file, std::as_bytes(std::span(line)));
}

std::optional<TrainingId> read_training_file(const std::filesystem::path& file,
                                             CheckpointFiles& files) {
  const auto content = files.read(file, kTrainingBytesMax);
  if (!content) {
    if (content.error().code != ErrorCode::kNotFound) SPEEDO_WARN("{}", content.error().message);
    return std::nullopt;
  }
  const auto training = parse(*content);
  if (!training) SPEEDO_WARN("'{}' does not name a training; it is passed over", file.string());
  return training;
}

}  // namespace speedo
