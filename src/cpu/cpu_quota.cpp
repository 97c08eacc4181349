#include "cpu/cpu_quota.hpp"

#include <algorithm>
#include <fstream>
#include <string>

namespace speedo::cpu {
namespace {

namespace fs = std::filesystem;

// The smaller of two limits, where there are any.
std::optional<double> smaller(std::optional<double> a, std::optional<double> b) {
  if (!a.has_value() || !b.has_value()) return a.has_value() ? a : b;
  return std::min(*a, *b);
}

std::optional<double> ratio(double quota, double period) {
  if (quota <= 0.0 || period <= 0.0) return std::nullopt;
  return quota / period;
}

// cpu.max: "<quota or max> <period>", in microseconds.
std::optional<double> read_version_2(const fs::path& group) {
  std::ifstream file(group / "cpu.max");
  std::string quota;
  double period = 0.0;
  if (!(file >> quota >> period) || quota == "max") return std::nullopt;
  return ratio(std::strtod(quota.c_str(), nullptr), period);
}

// Two files; a quota of -1 is none.
std::optional<double> read_version_1(const fs::path& group) {
  double quota = -1.0, period = 0.0;
  if (!(std::ifstream(group / "cpu.cfs_quota_us") >> quota)) return std::nullopt;
  if (!(std::ifstream(group / "cpu.cfs_period_us") >> period)) return std::nullopt;
  return ratio(quota, period);
}

// The tightest limit from a group up to the root of its hierarchy. In a container the group may be
// named as its host sees it; then only the root is there to be read.
template <class Read>
std::optional<double> tightest(const fs::path& hierarchy, const std::string& group,
                               const Read& read) {
  std::optional<double> limit = read(hierarchy);
  fs::path at = hierarchy;
  for (const fs::path& step : fs::path(group).relative_path()) {
    at /= step;
    limit = smaller(limit, read(at));
  }
  return limit;
}

bool has_controller(const std::string& list, const std::string& wanted) {
  return ("," + list + ",").find("," + wanted + ",") != std::string::npos;
}

}  // namespace

std::optional<double> cpu_quota(const fs::path& root) {
  std::ifstream groups(root / "proc/self/cgroup");
  const fs::path mounts = root / "sys/fs/cgroup";
  std::optional<double> limit;
  // "<hierarchy>:<controllers>:<group>"; version 2 names no controllers.
  for (std::string line; std::getline(groups, line);) {
    const std::size_t first = line.find(':');
    const std::size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const std::string group = line.substr(second + 1);
    if (controllers.empty()) {
      limit = smaller(limit, tightest(mounts, group, read_version_2));
    } else if (has_controller(controllers, "cpu")) {
      for (const char* mount : {"cpu,cpuacct", "cpu"}) {
        limit = smaller(limit, tightest(mounts / mount, group, read_version_1));
      }
    }
  }
  return limit;
}

}  // namespace speedo::cpu
