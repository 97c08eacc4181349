#pragma once

#include <cstddef>
#include <memory>

namespace speedo::cpu::onednn {

// A stack for the handlers of the signals that the calling thread takes, as long as this lives.
// oneDNN's matrix products point the stack register at their workspace, which lies between other
// memory: a handler that runs there overwrites what is below. Handlers must have SA_ONSTACK. A
// thread that has such a stack already keeps it.
class SignalStack {
 public:
  SignalStack();
  ~SignalStack();
  SignalStack(const SignalStack&) = delete;
  SignalStack& operator=(const SignalStack&) = delete;

 private:
  std::unique_ptr<std::byte[]> memory_;  // null: it is not ours
};

}  // namespace speedo::cpu::onednn
