#include "store/shared/memory_door.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <thread>
#include <utility>
#include <vector>

#include <speedo/base/limits.hpp>
#include <speedo/base/thread_name.hpp>

#include "base/descriptor.hpp"
#include "base/log.hpp"
#include "base/random_bits.hpp"

namespace speedo {
namespace {

constexpr std::uint64_t kDoorMagic = 0x31524F4F44445053;  // "SPDDOOR1", little-endian
constexpr std::size_t kDoorTextMax = 512;
constexpr std::size_t kMemories = 2;  // board and values
// Whoever comes has everything ready; who waits at the door may wait for some that have not.
constexpr std::chrono::milliseconds kVisitorPatience{200}, kDoorPatience{5000};
// Between looks at visitors who cannot be let in.
constexpr int kDoorRestMs = 100;

struct DoorHead {
  std::uint64_t magic = kDoorMagic;
  std::uint32_t refuses = 0;  // of an answer: 1 if the text says why not
  std::uint32_t text_bytes = 0;
};

// What goes through the door at once.
struct Packet {
  DoorHead head;
  std::string text;
  std::vector<int> descriptors;
};

Error door_error(const char* step) {
  return Error{ErrorCode::kUnavailable,
               "shared memory: " + std::string(step) + ": " + std::strerror(errno)};
}

// The name begins with a zero byte: no file.
socklen_t address_of(const std::string& name, sockaddr_un& address) {
  address = {};
  address.sun_family = AF_UNIX;
  const std::size_t length = std::min(name.size(), sizeof(address.sun_path) - 1);
  std::memcpy(address.sun_path + 1, name.data(), length);
  return static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
}

void set_patience(int socket, std::chrono::milliseconds time) {
  const timeval patience{.tv_sec = time.count() / 1000, .tv_usec = time.count() % 1000 * 1000};
  setsockopt(socket, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
  setsockopt(socket, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof(patience));
}

bool is_of_this_user(int socket) {
  ucred other{};
  socklen_t size = sizeof(other);
  return getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) == 0 &&
         other.uid == geteuid();
}

Result<void> send_packet(int socket, Packet packet) {
  packet.head.text_bytes = static_cast<std::uint32_t>(packet.text.size());
  std::array<iovec, 2> parts{{{&packet.head, sizeof(packet.head)},
                              {packet.text.data(), packet.text.size()}}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMemories * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  if (!packet.descriptors.empty()) {
    const std::size_t bytes = packet.descriptors.size() * sizeof(int);
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(bytes);
    cmsghdr* const rights = CMSG_FIRSTHDR(&message);
    rights->cmsg_level = SOL_SOCKET;
    rights->cmsg_type = SCM_RIGHTS;
    rights->cmsg_len = CMSG_LEN(bytes);
    std::memcpy(CMSG_DATA(rights), packet.descriptors.data(), bytes);
  }
  if (sendmsg(socket, &message, MSG_NOSIGNAL) < 0) return door_error("sendmsg");
  return {};
}

// The descriptors are the caller's to close, in any case.
Result<void> receive_packet(int socket, Packet& packet) {
  std::array<char, kDoorTextMax> text;
  std::array<iovec, 2> parts{{{&packet.head, sizeof(packet.head)}, {text.data(), text.size()}}};
  alignas(cmsghdr) std::array<char, CMSG_SPACE(kMemories * sizeof(int))> control{};
  msghdr message{};
  message.msg_iov = parts.data();
  message.msg_iovlen = parts.size();
  message.msg_control = control.data();
  message.msg_controllen = control.size();
  const ssize_t bytes = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
  if (bytes < 0) return door_error("recvmsg");
  for (cmsghdr* each = CMSG_FIRSTHDR(&message); each; each = CMSG_NXTHDR(&message, each)) {
    if (each->cmsg_level != SOL_SOCKET || each->cmsg_type != SCM_RIGHTS) continue;
    packet.descriptors.resize((each->cmsg_len - CMSG_LEN(0)) / sizeof(int));
    std::memcpy(packet.descriptors.data(), CMSG_DATA(each),
                packet.descriptors.size() * sizeof(int));
  }
  const auto size = static_cast<std::size_t>(bytes);
  const bool is_whole = size >= sizeof(DoorHead) && packet.head.magic == kDoorMagic &&
                        packet.head.text_bytes == size - sizeof(DoorHead) &&
                        (message.msg_flags & (MSG_TRUNC | MSG_CTRUNC)) == 0;
  if (!is_whole) {
    return Error{ErrorCode::kMismatch,
                 "shared memory: what came is no offer of this version of SpeeDO"};
  }
  packet.text.assign(text.data(), packet.head.text_bytes);
  return {};
}

// Takes the descriptors of the packet, whatever they are.
Result<std::shared_ptr<const SharedRecord>> record_in(Packet& packet) {
  std::vector<std::shared_ptr<const SharedMemory>> memories;
  std::optional<Error> error;
  for (const int descriptor : std::exchange(packet.descriptors, {})) {
    auto mapped = SharedMemory::map(descriptor);
    if (mapped) {
      memories.push_back(std::move(*mapped));
    } else {
      error = mapped.error();
    }
  }
  if (error) return *error;
  if (memories.size() != kMemories) {
    return Error{ErrorCode::kMismatch, "shared memory: an offer without its memory"};
  }
  return SharedRecord::make(std::move(memories[0]), std::move(memories[1]));
}

std::vector<int> descriptors_of(const RecordMemory& memory) {
  return {memory.board()->descriptor(), memory.values()->descriptor()};
}

class SocketDoor : public MemoryDoor {
 public:
  SocketDoor(std::shared_ptr<SharedStore> store, std::uint64_t term, int socket, int stop,
             std::string address)
      : store_(std::move(store)),
        term_(term),
        socket_(socket),
        stop_(stop),
        address_(std::move(address)),
        thread_([this] { serve(); }) {}

  ~SocketDoor() override {
    const std::uint64_t one = 1;
    while (write(stop_.get(), &one, sizeof(one)) < 0 && errno == EINTR) {
    }
    thread_.join();
  }
  SocketDoor(const SocketDoor&) = delete;
  SocketDoor& operator=(const SocketDoor&) = delete;

  const std::string& address() const override { return address_; }

 private:
  void serve() {
    name_thread("memory-door");
    while (true) {
      std::array<pollfd, 2> both{{{socket_.get(), POLLIN, 0}, {stop_.get(), POLLIN, 0}}};
      if (poll(both.data(), both.size(), -1) < 0 && errno != EINTR) break;
      if (both[1].revents != 0) return;
      if (both[0].revents == 0) continue;
      const Descriptor visitor(accept4(socket_.get(), nullptr, nullptr, SOCK_CLOEXEC));
      if (visitor.get() < 0) {
        // One that there is no descriptor for stays at the door, and poll() returns at once.
        if (errno != EINTR && errno != ECONNABORTED) poll(&both[1], 1, kDoorRestMs);
      } else if (is_of_this_user(visitor.get())) {
        answer(visitor.get());
      }
    }
    SPEEDO_WARN("workers that join from now on share no memory: {}", door_error("poll").message);
  }

  void answer(int visitor) {
    set_patience(visitor, kVisitorPatience);
    Packet offer;
    const auto weights = [&]() -> Result<std::shared_ptr<RecordMemory>> {
      const auto received = receive_packet(visitor, offer);
      auto record = record_in(offer);
      SPEEDO_TRY(received);
      SPEEDO_TRY(record);
      return take_offer(*store_, term_, offer.text, std::move(*record));
    }();
    Packet reply;
    if (weights) {
      reply.descriptors = descriptors_of(**weights);
    } else {
      reply.head.refuses = 1;
      reply.text = weights.error().message.substr(0, kDoorTextMax);
    }
    send_packet(visitor, std::move(reply)).ignore("a worker that has gone asks again, or never");
  }

  const std::shared_ptr<SharedStore> store_;
  const std::uint64_t term_;
  const Descriptor socket_, stop_;
  const std::string address_;
  std::thread thread_;  // last: it uses the others
};

class SocketExchange : public MemoryExchange {
 public:
  explicit SocketExchange(std::string address) : address_(std::move(address)) {}

  Result<std::shared_ptr<const SharedRecord>> offer(std::string_view key,
                                                    const RecordMemory& memory) override {
    const Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
    if (socket.get() < 0) return door_error("socket");
    sockaddr_un address;
    const socklen_t length = address_of(address_, address);
    if (connect(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0) {
      return Error{ErrorCode::kUnavailable,
                   "the master is on another machine, or in another network name space"};
    }
    if (!is_of_this_user(socket.get())) {
      return Error{ErrorCode::kUnavailable, "the master is another user's"};
    }
    set_patience(socket.get(), kDoorPatience);
    Packet packet;
    packet.text = key;
    packet.descriptors = descriptors_of(memory);
    SPEEDO_TRY(send_packet(socket.get(), std::move(packet)));
    Packet reply;
    const auto received = receive_packet(socket.get(), reply);
    auto record = record_in(reply);
    SPEEDO_TRY(received);
    if (reply.head.refuses != 0) return Error{ErrorCode::kUnavailable, reply.text};
    return record;
  }

 private:
  const std::string address_;
};

}  // namespace

Result<std::unique_ptr<MemoryDoor>> open_memory_door(std::shared_ptr<SharedStore> store,
                                                     std::uint64_t term) {
  Descriptor socket(::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0));
  if (socket.get() < 0) return door_error("socket");
  const std::string name =
      "speedo-" + std::to_string(random_bits()) + '-' + std::to_string(random_bits());
  sockaddr_un address;
  const socklen_t length = address_of(name, address);
  if (bind(socket.get(), reinterpret_cast<sockaddr*>(&address), length) != 0 ||
      listen(socket.get(), SOMAXCONN) != 0) {
    return door_error("bind");
  }
  Descriptor stop(eventfd(0, EFD_CLOEXEC));
  if (stop.get() < 0) return door_error("eventfd");
  return std::unique_ptr<MemoryDoor>(std::make_unique<SocketDoor>(
      std::move(store), term, socket.release(), stop.release(), name));
}

std::unique_ptr<MemoryExchange> find_memory_door(const std::string& address) {
  return std::make_unique<SocketExchange>(address);
}

}  // namespace speedo
