#include "cpu/onednn/signal_stack.hpp"

#include <algorithm>
#include <csignal>

#include <unistd.h>

#include <speedo/base/assert.hpp>

namespace speedo::cpu::onednn {
namespace {

// Handlers of programs do little; the registers that are saved there take some 12 KiB at most.
constexpr long kStackBytesMin = 64 << 10;

}  // namespace

SignalStack::SignalStack() {
  stack_t there{};
  if (::sigaltstack(nullptr, &there) != 0 || (there.ss_flags & SS_DISABLE) == 0) return;
  const auto bytes = static_cast<std::size_t>(std::max(::sysconf(_SC_SIGSTKSZ), kStackBytesMin));
  memory_ = std::make_unique<std::byte[]>(bytes);
  const stack_t stack{.ss_sp = memory_.get(), .ss_flags = 0, .ss_size = bytes};
  const bool is_set = ::sigaltstack(&stack, nullptr) == 0;
  SPEEDO_ASSERT(is_set);
}

SignalStack::~SignalStack() {
  if (!memory_) return;
  const stack_t none{.ss_sp = nullptr, .ss_flags = SS_DISABLE, .ss_size = 0};
  ::sigaltstack(&none, nullptr);
}

}  // namespace speedo::cpu::onednn
