#include "sandbox/confinement.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <string>

#include "base/descriptor.hpp"
#include "sandbox/system_calls.hpp"

namespace speedo {

namespace {

// Not where a sanitizer has taken terabytes of them.
#ifdef SPEEDO_SANITIZED
constexpr bool kLimitsAddresses = false;
#else
constexpr bool kLimitsAddresses = true;
#endif

// Of the whole process, as the kernel counts RLIMIT_AS.
std::uint64_t address_space_bytes() {
  std::FILE* const file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  unsigned long pages = 0;
  const int found = std::fscanf(file, "%lu", &pages);
  std::fclose(file);
  return found == 1 ? pages * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE)) : 0;
}

// A limit that is lower already stays.
bool limit(__rlimit_resource what, std::uint64_t most) {
  rlimit limits{};
  if (::getrlimit(what, &limits) != 0) return false;
  limits.rlim_max = std::min<rlim_t>(limits.rlim_max, most);
  limits.rlim_cur = limits.rlim_max;
  return ::setrlimit(what, &limits) == 0;
}

bool limit_memory(std::uint64_t more) {
  if (!kLimitsAddresses) return true;
  const std::uint64_t now = address_space_bytes();
  return now > 0 && limit(RLIMIT_AS, now + more);
}

// Where the kernel has none of it, it ends the largest process first.
void offer_to_go_first() {
  const Descriptor file(::open("/proc/self/oom_score_adj", O_WRONLY | O_CLOEXEC));
  if (file.get() >= 0 && ::write(file.get(), "1000", 4) < 0) return;
}

}  // namespace

Result<void> confine_process(const Confinement& confinement) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGPIPE, SIGXFSZ}) {
    ::signal(signal, SIG_IGN);
  }
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  // It may have ended before that.
  if (::getppid() != confinement.parent) {
    return Error{ErrorCode::kUnavailable, "the process that asked for this helper is gone"};
  }
  offer_to_go_first();
  constexpr std::uint64_t kFilesMax = 16;
  const bool limited = limit(RLIMIT_CORE, 0) && limit(RLIMIT_FSIZE, 0) &&
                       limit(RLIMIT_NOFILE, kFilesMax) && limit_memory(confinement.memory_bytes) &&
                       ::prctl(PR_SET_DUMPABLE, 0) == 0;
  if (!limited) {
    return Error{ErrorCode::kUnavailable,
                 std::string("a helper process cannot be limited: ") + std::strerror(errno)};
  }
  return allow_computing_alone();
}

}  // namespace speedo
