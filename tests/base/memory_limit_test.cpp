#include "base/memory_limit.hpp"

#include <fstream>
#include <vector>

#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kMib = 1024 * 1024;

// A system as /proc and /sys show it: a machine with 1000 MiB.
struct System {
  System() { write("proc/meminfo", "MemTotal:        1024000 kB\nMemFree:  17 kB\n"); }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories((root / name).parent_path());
    std::ofstream(root / name) << text;
  }
  MemoryLimit limit() const { return memory_limit(root.path()); }
  TempDir root;
};

TEST_CASE("Without a limit there is the machine's memory") {
  const System system;
  CHECK(system.limit().bytes == 1000 * kMib);
  CHECK(system.limit().what == "the machine's memory");
  system.write("proc/self/cgroup", "0::/a/b\n");
  system.write("sys/fs/cgroup/a/b/memory.max", "max\n");
  CHECK(system.limit().bytes == 1000 * kMib);
}

TEST_CASE("The smallest limit of the groups above counts, in both versions") {
  const System second;
  second.write("proc/self/cgroup", "0::/a/b\n");
  second.write("sys/fs/cgroup/a/b/memory.max", "629145600\n");
  CHECK(second.limit().bytes == 600 * kMib);
  CHECK(second.limit().what == "the limit of its cgroup");
  second.write("sys/fs/cgroup/a/memory.max", "524288000\n");
  CHECK(second.limit().bytes == 500 * kMib);

  const System first;
  first.write("proc/self/cgroup", "9:name=systemd:/\n4:cpu,memory:/x\n3:cpuset:/y\n");
  first.write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "9223372036854771712\n");
  CHECK(first.limit().bytes == 1000 * kMib);
  first.write("sys/fs/cgroup/memory/x/memory.limit_in_bytes", "104857600\n");
  CHECK(first.limit().bytes == 100 * kMib);
}

TEST_CASE("In a container the group's path is the host's, and its root is what is mounted") {
  const System system;
  system.write("proc/self/cgroup", "0::/docker/0123abc\n");
  system.write("sys/fs/cgroup/memory.max", "209715200\n");
  CHECK(system.limit().bytes == 200 * kMib);
}

TEST_CASE("The process' own memory: the peak is not below what there is now") {
  CHECK(resident_bytes() > kMib);
  const std::int64_t before = peak_resident_bytes();
  std::vector<char> touched(64 * kMib, 1);
  const std::int64_t peak = peak_resident_bytes();
  CHECK(peak >= before);
  CHECK(peak >= static_cast<std::int64_t>(touched.size()));
}

TEST_CASE("Bytes are written for people") {
  CHECK(format_bytes(kMib / 2) == "512 KiB");
  CHECK(format_bytes(3 * kMib / 2) == "1.5 MiB");
  CHECK(format_bytes(812 * kMib) == "812 MiB");
  CHECK(format_bytes(1536 * kMib) == "1.50 GiB");
}

}  // namespace
}  // namespace speedo
