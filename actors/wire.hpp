#pragma once

// Messages on their way to and from another process: none is too long.
#include <chrono>
#include <cstddef>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/limits.hpp>
#include <speedo/train/messages.hpp>

#include "actors/compat.hpp"

namespace speedo {

// Of a message for CAF's own: who sends, who receives, which type.
inline constexpr std::size_t kFramingBytes = 512;

// Who asks a master how its job stands is answered at most so often, and asks no more often: what
// an answer takes is held for whoever does not read it.
inline constexpr std::chrono::milliseconds kStatusPause{100};

// At most so many bytes does the content of a message take when it travels.
template <WireMessage Message>
std::size_t content_bytes(Message& message) {
  constexpr std::size_t kLengthBytes = 10;  // before a text
  const auto bytes_of = [](const auto& field) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, std::string>) {
      return field.size() + kLengthBytes;
    } else if constexpr (requires { field.capacity(); }) {
      return field.size() * sizeof(field[0]) + kLengthBytes;
    } else {
      return sizeof(field);
    }
  };
  return std::apply([&](const auto&... field) { return (std::size_t{0} + ... + bytes_of(field)); },
                    message.fields());
}

// The way of every message to another process. Requires: its texts are at most kTextMax bytes.
template <class Self, WireMessage Message>
void tell(Self* self, const caf::actor& receiver, Message message) {
  SPEEDO_ASSERT(content_bytes(message) + kFramingBytes <= kMessageBytesMax);
  self->send(receiver, std::move(message));
}

// What came from another process, its texts as short as ours.
template <WireMessage Message>
Message clipped(Message message) {
  const auto clip = [](auto& field) {
    if constexpr (std::is_same_v<std::decay_t<decltype(field)>, std::string>) {
      field = clip_text(field);
    }
  };
  std::apply([&](auto&... field) { (clip(field), ...); }, message.fields());
  return message;
}

}  // namespace speedo
