#include "cli/kept_inputs.hpp"

#include <algorithm>
#include <array>
#include <string_view>
#include <system_error>

#include <fmt/format.h>

#include <speedo/base/remote_files.hpp>

#include "base/whole_path.hpp"
#include "cli/net_inputs.hpp"

namespace speedo {

namespace {

// What the folders of LMDB, LevelDB and CIFAR have; another file in one is nobody's input.
bool holds_data(const std::filesystem::path& file) {
  constexpr auto kNames = std::to_array<std::string_view>({"data.mdb", "lock.mdb", "CURRENT"});
  constexpr auto kEndings = std::to_array<std::string_view>({".ldb", ".sst", ".log", ".bin"});
  const std::string name = file.filename().string(), ending = file.extension().string();
  return std::ranges::find(kNames, name) != kNames.end() || name.starts_with("MANIFEST-") ||
         std::ranges::find(kEndings, ending) != kEndings.end();
}

}  // namespace

bool takes_away(const std::filesystem::path& whole_target, const std::string& input) {
  if (input.empty() || is_uri(input)) return false;
  const std::filesystem::path whole = whole_path(input);
  if (is_within(whole, whole_target)) return true;
  std::error_code code;
  return whole_target.parent_path() == whole && holds_data(whole_target) &&
         std::filesystem::exists(whole_target, code);
}

Error replaced_input_error(const std::string& named, const std::string& input) {
  return usage_error(
      fmt::format("{} would replace {}, which is read: give it another name", named, input));
}

Result<void> check_target(const std::filesystem::path& target,
                          const std::vector<std::string>& inputs, const std::string& named) {
  const std::filesystem::path whole = whole_path(target);
  for (const std::string& input : inputs) {
    if (takes_away(whole, input)) return replaced_input_error(named, input);
    for (const std::string& part : split_at_commas(input)) {
      if (takes_away(whole, part)) return replaced_input_error(named, part);
    }
  }
  return {};
}

}  // namespace speedo
