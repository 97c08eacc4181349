#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <type_traits>

#include "base/descriptor.hpp"
#include "sandbox/helper_task.hpp"

namespace speedo {

// What goes over the socket (SOCK_SEQPACKET) between a process and its helper: one message of a
// group's tasks, and one of the answers to the first of them, in their order. Their bytes lie in
// the window, as WindowPlaces gives them: the inputs, then the outputs.
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

// Places in a window, one behind the other. Both sides derive them from sizes alone: no message
// says where something lies.
class WindowPlaces {
 public:
  explicit WindowPlaces(std::span<std::byte> window) : rest_(window) {}

  // The next so many bytes; nothing if there are less.
  std::optional<std::span<std::byte>> take(std::uint64_t bytes);
  std::span<std::byte> rest() const { return rest_; }

 private:
  std::span<std::byte> rest_;
};

// False: the other side is gone. `file` -1: none is given along.
bool send_bytes(int socket, std::span<const std::byte> message, int file = -1);

enum class Received { kMessage, kEnd, kTimeout };
struct ReceivedBytes {
  Received what = Received::kEnd;
  std::size_t bytes = 0;  // of the message; > 0 if there is one
};
// A message that the room holds; a larger one, or an empty one, counts as the other side's end.
// `file`: what was given along, if anything.
ReceivedBytes receive_bytes(int socket, std::span<std::byte> room, Descriptor* file = nullptr);

template <class Message>
std::span<std::byte> bytes_of(std::span<Message> messages) {
  static_assert(std::is_trivially_copyable_v<Message>);
  return std::as_writable_bytes(messages);
}

struct ReceivedMessages {
  Received what = Received::kEnd;
  std::size_t count = 0;  // > 0 if there is a message
};
// receive_bytes() of whole messages; a part of one counts as the other side's end.
template <class Message>
ReceivedMessages receive_messages(int socket, std::span<Message> room, Descriptor* file = nullptr) {
  const ReceivedBytes received = receive_bytes(socket, bytes_of(room), file);
  if (received.bytes % sizeof(Message) != 0) return {};
  return {received.what, received.bytes / sizeof(Message)};
}

}  // namespace speedo
