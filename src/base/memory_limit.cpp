// What the system tells of memory:
//   /proc/meminfo          MemTotal:  24737576 kB
//   /proc/self/status      VmHWM:     182340 kB
//   /proc/self/cgroup      0::/a/b (version 2), 9:memory:/a/b (version 1)
// A limit holds for everything below it, so those of /a and / count as well. In a container the
// path may be the host's; its own group is then the root of what is mounted.

#include "base/memory_limit.hpp"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <optional>

#include <fmt/format.h>

namespace speedo {

namespace fs = std::filesystem;

namespace {

constexpr std::int64_t kKibi = 1024;

std::optional<std::int64_t> first_number(const std::string& text) {
  const std::size_t first = text.find_first_of("0123456789");
  if (first == std::string::npos) return std::nullopt;
  std::int64_t value = 0;
  const auto [end, code] = std::from_chars(text.data() + first, text.data() + text.size(), value);
  if (code != std::errc()) return std::nullopt;
  return value;
}

// The value of a line "KEY: N kB".
std::optional<std::int64_t> read_entry(const fs::path& file, const std::string& key) {
  std::ifstream stream(file);
  for (std::string line; std::getline(stream, line);) {
    if (!line.starts_with(key + ":")) continue;
    const auto value = first_number(line.substr(key.size()));
    if (value) return *value * kKibi;
  }
  return std::nullopt;
}

// Of a file that holds a number; "max" is none, and so is what does not fit 63 bits.
std::optional<std::int64_t> read_limit(const fs::path& file) {
  std::ifstream stream(file);
  std::string line;
  if (!std::getline(stream, line)) return std::nullopt;
  return first_number(line);
}

// The smallest limit of the group `path` and those above it.
std::int64_t smallest_limit(const fs::path& mount, const std::string& path, const char* file) {
  std::int64_t smallest = INT64_MAX;
  fs::path group = fs::path(path).relative_path();
  for (;;) {
    smallest = std::min(smallest, read_limit(mount / group / file).value_or(INT64_MAX));
    if (group.empty()) return smallest;
    group = group.parent_path();
  }
}

std::int64_t cgroup_limit(const fs::path& root) {
  std::int64_t smallest = INT64_MAX;
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    const fs::path mount = root / "sys/fs/cgroup";
    if (controllers == ",,") {
      smallest = std::min(smallest, smallest_limit(mount, path, "memory.max"));
    } else if (controllers.find(",memory,") != std::string::npos) {
      smallest =
          std::min(smallest, smallest_limit(mount / "memory", path, "memory.limit_in_bytes"));
    }
  }
  return smallest;
}

}  // namespace

MemoryLimit memory_limit(const fs::path& root) {
  MemoryLimit limit;
  if (const auto machine = read_entry(root / "proc/meminfo", "MemTotal")) {
    limit = {*machine, "the machine's memory"};
  }
  const std::int64_t cgroup = cgroup_limit(root);
  if (cgroup < limit.bytes) limit = {cgroup, "the limit of its cgroup"};
  return limit;
}

std::int64_t resident_bytes() { return read_entry("/proc/self/status", "VmRSS").value_or(0); }

std::int64_t peak_resident_bytes() { return read_entry("/proc/self/status", "VmHWM").value_or(0); }

std::string format_bytes(std::int64_t bytes) {
  const double mib = static_cast<double>(bytes) / (1024.0 * 1024.0);
  if (mib < 1.0) return fmt::format("{:.0f} KiB", 1024.0 * mib);
  if (mib < 10.0) return fmt::format("{:.1f} MiB", mib);
  if (mib < 1024.0) return fmt::format("{:.0f} MiB", mib);
  return fmt::format("{:.2f} GiB", mib / 1024.0);
}

}  // namespace speedo
