#include "sandbox/system_calls.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace speedo {

namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kMachine = AUDIT_ARCH_AARCH64;
#else
#error "system_calls.cpp knows the system calls of x86-64 and AArch64"
#endif

constexpr long kAllowed[] = {
    // what is open already
    SYS_read, SYS_readv, SYS_pread64, SYS_write, SYS_writev, SYS_recvmsg, SYS_sendmsg, SYS_close,
    // memory
    SYS_munmap, SYS_mremap, SYS_brk,
    // time, chance, and what the C library asks for when it waits, sorts or gives up
    SYS_clock_gettime, SYS_gettimeofday, SYS_getrandom, SYS_futex, SYS_sched_yield, SYS_sysinfo,
    SYS_getpid, SYS_gettid, SYS_rt_sigprocmask, SYS_rt_sigreturn, SYS_restart_syscall, SYS_exit,
    SYS_exit_group,
#ifdef SPEEDO_SANITIZED
    // The undefined-behaviour sanitizer writes what it is to look at into one: is it memory at all?
    SYS_pipe2,
    // The address sanitizer does at each exception and longjmp().
    SYS_sigaltstack,
#endif
};

// Allowed where comparing the lower half of one argument with `value` gives `allowed`. The kernel
// looks at no more of these arguments.
struct CheckedCall {
  long call;
  std::size_t argument;
  std::uint16_t comparison;
  std::uint32_t value;
  bool allowed;
};

std::array<CheckedCall, 4> checked_calls() {
  const auto own = static_cast<std::uint32_t>(::getpid());
  return {{
      // No memory that can be run.
      {SYS_mmap, 2, BPF_JSET, PROT_EXEC, false},
      {SYS_mprotect, 2, BPF_JSET, PROT_EXEC, false},
      // From here on advice that no library gives: root's alone, that pages of the machine are
      // broken, or of newer kernels.
      {SYS_madvise, 2, BPF_JGE, MADV_HWPOISON, false},
      // abort() and raise() are signals to oneself.
      {SYS_tgkill, 0, BPF_JEQ, own, true},
  }};
}

constexpr std::uint32_t offset_of_argument(std::size_t index) {
  // The lower half, which comes first on both machines.
  return static_cast<std::uint32_t>(offsetof(seccomp_data, args) + index * sizeof(std::uint64_t));
}

std::vector<sock_filter> program() {
  const sock_filter end = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS);
  const sock_filter allow = BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
  std::vector<sock_filter> steps = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, arch)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, kMachine, 1, 0),
      end,
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
  };
  for (const long call : kAllowed) {
    steps.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, static_cast<std::uint32_t>(call), 0, 1));
    steps.push_back(allow);
  }
  for (const CheckedCall& each : checked_calls()) {
    const auto call = static_cast<std::uint32_t>(each.call);
    steps.push_back(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4));
    steps.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offset_of_argument(each.argument)));
    steps.push_back(
        BPF_JUMP(static_cast<std::uint16_t>(BPF_JMP | BPF_K | each.comparison), each.value, 0, 1));
    steps.push_back(each.allowed ? allow : end);
    steps.push_back(each.allowed ? end : allow);
  }
  steps.push_back(end);
  return steps;
}

}  // namespace

Result<void> allow_computing_alone() {
  std::vector<sock_filter> steps = program();
  const sock_fprog filter{static_cast<unsigned short>(steps.size()), steps.data()};
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
      ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &filter) == 0) {
    return {};
  }
  return Error{ErrorCode::kUnsupported,
               std::string("the system lets no process give up its system calls (seccomp): ") +
                   std::strerror(errno)};
}

}  // namespace speedo
