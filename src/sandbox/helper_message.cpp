#include "sandbox/helper_message.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

namespace speedo {

namespace {

// A cache line, so that what one side writes does not disturb what lies beside it.
constexpr std::size_t kPlaceBytes = 64;

// Room for the one descriptor that a message can carry.
union FileRoom {
  cmsghdr header;
  char bytes[CMSG_SPACE(sizeof(int))];
};

int file_in(msghdr& message) {
  const cmsghdr* const control = CMSG_FIRSTHDR(&message);
  if (control == nullptr || control->cmsg_type != SCM_RIGHTS) return -1;
  int file = -1;
  std::memcpy(&file, CMSG_DATA(control), sizeof(file));
  return file;
}

}  // namespace

std::optional<std::span<std::byte>> WindowPlaces::take(std::uint64_t bytes) {
  if (bytes > rest_.size()) return std::nullopt;
  const auto count = static_cast<std::size_t>(bytes);
  const std::span<std::byte> taken = rest_.first(count);
  const std::size_t padding = (kPlaceBytes - count % kPlaceBytes) % kPlaceBytes;
  rest_ = rest_.subspan(std::min(count + padding, rest_.size()));
  return taken;
}

bool send_bytes(int socket, std::span<const std::byte> message, int file) {
  iovec part{const_cast<std::byte*>(message.data()), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  FileRoom room{};
  if (file >= 0) {
    header.msg_control = room.bytes;
    header.msg_controllen = sizeof(room.bytes);
    cmsghdr* const control = CMSG_FIRSTHDR(&header);
    control->cmsg_level = SOL_SOCKET;
    control->cmsg_type = SCM_RIGHTS;
    control->cmsg_len = CMSG_LEN(sizeof(int));
    std::memcpy(CMSG_DATA(control), &file, sizeof(file));
  }
  ssize_t sent = 0;
  do {
    sent = ::sendmsg(socket, &header, MSG_NOSIGNAL);
  } while (sent < 0 && errno == EINTR);
  return sent == static_cast<ssize_t>(message.size());
}

ReceivedBytes receive_bytes(int socket, std::span<std::byte> room, Descriptor* file) {
  iovec part{room.data(), room.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  FileRoom file_room{};
  if (file != nullptr) {
    header.msg_control = file_room.bytes;
    header.msg_controllen = sizeof(file_room.bytes);
  }
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (file != nullptr && got >= 0) *file = Descriptor(file_in(header));
  if (got > 0 && (header.msg_flags & MSG_TRUNC) == 0) {
    return {Received::kMessage, static_cast<std::size_t>(got)};
  }
  const bool late = got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK);
  return {late ? Received::kTimeout : Received::kEnd, 0};
}

}  // namespace speedo
