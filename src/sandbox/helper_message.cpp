#include "sandbox/helper_message.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <cerrno>
#include <cstring>

namespace speedo {

namespace {

constexpr std::size_t kPageBytes = 4096;

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

std::size_t output_offset(std::size_t input_bytes) {
  return (input_bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
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

Received receive_bytes(int socket, std::span<std::byte> message, Descriptor* file) {
  iovec part{message.data(), message.size()};
  msghdr header{};
  header.msg_iov = &part;
  header.msg_iovlen = 1;
  FileRoom room{};
  if (file != nullptr) {
    header.msg_control = room.bytes;
    header.msg_controllen = sizeof(room.bytes);
  }
  ssize_t got = 0;
  do {
    got = ::recvmsg(socket, &header, MSG_CMSG_CLOEXEC);
  } while (got < 0 && errno == EINTR);
  if (file != nullptr && got >= 0) *file = Descriptor(file_in(header));
  if (got == static_cast<ssize_t>(message.size()) && (header.msg_flags & MSG_TRUNC) == 0) {
    return Received::kMessage;
  }
  return got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK) ? Received::kTimeout : Received::kEnd;
}

}  // namespace speedo
