// What the CPU backend finds out about the machine: instruction sets, processors, quotas.

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <speedo/cpu/cpu_backend.hpp>

#include "cpu/cpu_quota.hpp"
#include "cpu/isa.hpp"
#include "support/catch.hpp"
#include "support/temp_dir.hpp"

namespace speedo {
namespace {

// A folder in the place of "/" with a process' control groups.
class FakeRoot {
 public:
  void put(const std::string& path, const std::string& text) {
    const std::filesystem::path file = folder_.path() / path;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }
  std::optional<double> quota() const { return cpu::cpu_quota(folder_.path()); }

 private:
  TempDir folder_;
};

TEST_CASE("without control groups there is no quota") { REQUIRE_FALSE(FakeRoot().quota()); }

TEST_CASE("the quota of control groups, version 2, is the tightest on the way to the root") {
  FakeRoot root;
  root.put("proc/self/cgroup", "0::/service/job\n");
  root.put("sys/fs/cgroup/service/cpu.max", "150000 100000\n");
  REQUIRE(root.quota() == 1.5);
  root.put("sys/fs/cgroup/service/job/cpu.max", "max 100000\n");
  REQUIRE(root.quota() == 1.5);
  root.put("sys/fs/cgroup/service/job/cpu.max", "50000 100000\n");
  REQUIRE(root.quota() == 0.5);
}

TEST_CASE("in a container the quota of version 2 stands at the root") {
  FakeRoot root;
  root.put("proc/self/cgroup", "0::/docker/0123\n");
  root.put("sys/fs/cgroup/cpu.max", "300000 100000\n");
  REQUIRE(root.quota() == 3.0);
}

TEST_CASE("the quota of control groups, version 1") {
  FakeRoot root;
  root.put("proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a/b\n1:name=systemd:/a\n");
  root.put("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_quota_us", "-1\n");
  root.put("sys/fs/cgroup/cpu,cpuacct/a/b/cpu.cfs_period_us", "100000\n");
  REQUIRE_FALSE(root.quota());
  root.put("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_quota_us", "400000\n");
  root.put("sys/fs/cgroup/cpu,cpuacct/a/cpu.cfs_period_us", "200000\n");
  REQUIRE(root.quota() == 2.0);
}

TEST_CASE("files that hold something else set no quota") {
  FakeRoot root;
  root.put("proc/self/cgroup", "nonsense\n0::/a\n");
  root.put("sys/fs/cgroup/a/cpu.max", GENERATE("", "x y", "100000", "-5 100000", "100 0"));
  REQUIRE_FALSE(root.quota());
}

TEST_CASE("the default is at least one thread, and no more than OPENBLAS_NUM_THREADS") {
  REQUIRE(default_threads() >= 1);
  const char* before = std::getenv("OPENBLAS_NUM_THREADS");
  const std::string kept = before == nullptr ? "" : before;
  setenv("OPENBLAS_NUM_THREADS", "1", 1);
  REQUIRE(default_threads() == 1);
  if (before == nullptr) {
    unsetenv("OPENBLAS_NUM_THREADS");
  } else {
    setenv("OPENBLAS_NUM_THREADS", kept.c_str(), 1);
  }
}

TEST_CASE("making a backend leaves the environment as it was") {
  const auto value = [](const char* name) {
    const char* found = std::getenv(name);
    return found == nullptr ? std::string("unset") : std::string(found);
  };
  const std::string threads = value("OPENBLAS_NUM_THREADS"), core = value("OPENBLAS_CORETYPE");
  REQUIRE(make_cpu_backend(CpuOptions{.threads = 2}).has_value());
  REQUIRE(value("OPENBLAS_NUM_THREADS") == threads);
  REQUIRE(value("OPENBLAS_CORETYPE") == core);
}

TEST_CASE("the instruction set is settled by the first backend") {
  const auto backend = make_cpu_backend(1);
  REQUIRE(cpu_isa() <= machine_isa());
  REQUIRE(limit_cpu_isa(cpu_isa()).has_value());
  for (const CpuIsa isa : {CpuIsa::kPortable, CpuIsa::kAvx2, CpuIsa::kAvx512}) {
    if (isa == cpu_isa()) continue;
    const auto refused = limit_cpu_isa(isa);
    REQUIRE_FALSE(refused.has_value());
    REQUIRE(refused.error().code == ErrorCode::kUsage);
    const std::string expected = isa > machine_isa() ? "lacks" : "first backend";
    REQUIRE(refused.error().message.find(expected) != std::string::npos);
  }
}

TEST_CASE("whether oneDNN is used is settled by the first backend") {
  const auto backend = make_cpu_backend(1);
  const bool used = cpu::uses_onednn();
  const auto left_out = leave_out_onednn();
  REQUIRE(left_out.has_value() == !used);
  REQUIRE(cpu::uses_onednn() == used);
  if (used) {
    REQUIRE(left_out.error().code == ErrorCode::kUsage);
    REQUIRE(left_out.error().message.find("first backend") != std::string::npos);
  }
  ConvolutionShape shape;
  shape.batch = 2;
  shape.channels = shape.outputs = 16;
  shape.src_size = shape.dst_size = {8, 8};
  shape.kernel = {3, 3};
  shape.stride = shape.dilation = shape.pad = {1, 1};
  int made_of_onednn = 0;
  for (const Layout layout : {Layout{}, Layout{8}, Layout{16}}) {
    shape.src_layout = shape.dst_layout = layout;
    const auto made = backend->make_convolution(shape);
    REQUIRE(made.has_value());
    made_of_onednn += (*made)->info().kernel.find("onednn") != std::string::npos ? 1 : 0;
  }
  REQUIRE((made_of_onednn > 0) == used);
}

TEST_CASE("bfloat16 is there only where the processor has it") {
  const auto made =
      make_cpu_backend(CpuOptions{.threads = 1, .precision = CpuPrecision::kBfloat16});
  REQUIRE(made.has_value() == cpu::has_bfloat16());
  if (!made) REQUIRE(made.error().code == ErrorCode::kUsage);
}

TEST_CASE("no result that all machines agree on is promised where the C library computes others") {
#if defined(__x86_64__)
  const auto refused = cpu::check_pinnable(CpuIsa::kPortable);
  REQUIRE_FALSE(refused);
  CHECK(refused.error().code == ErrorCode::kUsage);
  CHECK(refused.error().message.find("FMA") != std::string::npos);
#else
  CHECK(cpu::check_pinnable(CpuIsa::kPortable));
#endif
  CHECK(cpu::check_pinnable(CpuIsa::kAvx2));
  CHECK(cpu::check_pinnable(CpuIsa::kAvx512));
}

}  // namespace
}  // namespace speedo
