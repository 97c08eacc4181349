#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "base/descriptor.hpp"
#include "sandbox/helper_task.hpp"

namespace speedo {

// What goes over the socket (SOCK_SEQPACKET) between a process and its helper; the bytes of tasks
// and answers lie in the window: input from its start, output behind it.
struct TaskMessage {
  std::uint32_t kind = 0;
  std::uint32_t unused = 0;
  HelperNumbers numbers{};
  std::uint64_t input_bytes = 0;
};

struct AnswerMessage {
  std::uint32_t code = 0;  // 0: done; else an ErrorCode + 1, and the output is its message
  std::uint32_t unused = 0;
  HelperNumbers numbers{};
  std::uint64_t output_bytes = 0;
};

// Where the output begins behind so much input: at the next page.
std::size_t output_offset(std::size_t input_bytes);

// False: the other side is gone. `file` -1: none is given along.
bool send_bytes(int socket, std::span<const std::byte> message, int file = -1);

enum class Received { kMessage, kEnd, kTimeout };
// A message of exactly this size; another one counts as the other side's end. `file`: what was
// given along, if anything.
Received receive_bytes(int socket, std::span<std::byte> message, Descriptor* file = nullptr);

template <class Message>
std::span<std::byte> bytes_of(Message& message) {
  static_assert(std::is_trivially_copyable_v<Message>);
  return std::as_writable_bytes(std::span(&message, 1));
}

}  // namespace speedo
