#include "doctor/machine_check.hpp"

#include <sys/resource.h>
#include <sys/timex.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <thread>

#include <fmt/format.h>

#include <speedo/cpu/cpu_options.hpp>

#include "base/temporary_place.hpp"
#include "cpu/gemm/blas_core.hpp"
#include "cpu/isa.hpp"

namespace speedo {

namespace {

// Before this software was written no clock can be right.
constexpr std::chrono::sys_days kEarliest = std::chrono::year(2026) / 1 / 1;
// A master with its store's connections, logs and checkpoints.
constexpr std::uint64_t kFilesWanted = 256;

Finding check_kernels() {
  const std::string found(name(machine_isa()));
  if (machine_isa() != CpuIsa::kPortable) return {"kernels", Health::kOk, found};
  return {"kernels", Health::kWarning, found + ": this processor has neither AVX2 nor AVX-512",
          "training works, several times more slowly than on a newer processor"};
}

Finding check_blas() {
  const auto core = cpu::blas_core();
  if (!core) {
    return {"blas", Health::kProblem, core.error().message,
            "install OpenBLAS: apt-get install libopenblas0-pthread"};
  }
  return {"blas", Health::kOk, fmt::format("OpenBLAS, kernels for {}", *core)};
}

Finding check_threads() {
  const int usable = default_threads();
  const auto present = static_cast<int>(std::thread::hardware_concurrency());
  if (usable >= present) {
    return {"threads", Health::kOk, fmt::format("{} may be used, all there are", usable)};
  }
  return {"threads", Health::kWarning,
          fmt::format("{} of {} processors may be used (affinity, cgroup quota or "
                      "OPENBLAS_NUM_THREADS)",
                      usable, present),
          "give this process more of them, if that is not meant"};
}

std::string show_limit(const MemoryLimit& limit) {
  if (limit.bytes == MemoryLimit{}.bytes) return "how much there is is not known";
  return fmt::format("{}: {}", limit.what, format_bytes(limit.bytes));
}

Finding check_memory_there(const std::filesystem::path& root) {
  const MemoryLimit limit = memory_limit(root);
  if (limit.bytes < MemoryLimit{}.bytes) return {"memory", Health::kOk, show_limit(limit)};
  return {"memory", Health::kWarning, show_limit(limit),
          "mount /proc, which tells; until then nothing is refused for want of memory"};
}

std::uint64_t open_files_max() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return 0;
  return limit.rlim_cur;
}

Finding check_temporary_files() {
  const auto place = temporary_place();
  const std::string remedy = "let TMPDIR name a folder that this user may write to";
  if (!place) {
    return {"temporary files", Health::kWarning,
            fmt::format("{}; {} is used", place.error().message, kTemporaryPlace), remedy};
  }
  if (::access(place->c_str(), W_OK | X_OK) == 0) {
    return {"temporary files", Health::kOk, "in " + place->string()};
  }
  return {"temporary files", Health::kProblem,
          fmt::format("none can be made in {}: {}", place->string(), std::strerror(errno)), remedy};
}

Finding check_clock() {
  if (std::chrono::system_clock::now() < kEarliest) {
    return {"clock", Health::kProblem, "the clock stands before 2026",
            "set it: leases and checkpoints are told apart by it"};
  }
  timex state{};
  const int status = ::adjtimex(&state);
  if (status >= 0 && status != TIME_ERROR) return {"clock", Health::kOk, "synchronised"};
  return {"clock", Health::kWarning, "nothing says that the clock is synchronised",
          "run chrony or systemd-timesyncd on machines that share a job, so that their logs agree"};
}

}  // namespace

Finding check_memory(std::int64_t needed_bytes, const MemoryLimit& limit,
                     const std::string& parts) {
  const std::string what = fmt::format("{} are predicted{}{}; {}", format_bytes(needed_bytes),
                                       parts.empty() ? "" : ": ", parts, show_limit(limit));
  if (needed_bytes <= limit.bytes) return {"memory", Health::kOk, what};
  return {
      "memory", Health::kProblem, what,
      "lower batch_size (and raise iter_size), use fewer workers a machine, or raise the limit"};
}

Finding check_open_files(std::uint64_t limit, std::uint64_t connections) {
  const std::string what = fmt::format("{} may be open", limit);
  if (limit >= kFilesWanted + connections) return {"open files", Health::kOk, what};
  return {"open files", Health::kProblem, what,
          fmt::format("raise it to {} or more: ulimit -n, or LimitNOFILE of a systemd unit",
                      kFilesWanted + connections)};
}

Findings check_machine(const std::filesystem::path& root) {
  return {check_kernels(),
          check_blas(),
          check_threads(),
          check_memory_there(root),
          check_open_files(open_files_max(), 0),
          check_temporary_files(),
          check_clock()};
}

}  // namespace speedo
