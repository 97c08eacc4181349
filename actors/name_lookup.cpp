#include "actors/name_lookup.hpp"

#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>

#include <sys/socket.h>

#include <fmt/format.h>

namespace speedo {
namespace {

constexpr std::chrono::milliseconds kStopSlice{50};

// What the asking and the waiting thread share; the last one to go frees it.
struct Question {
  LookUp look_up;
  Address address;
  std::mutex mutex;
  std::condition_variable changed;
  std::optional<Result<HostAddresses>> answer;
};

Error look_up_error(const Address& address, const std::string& why) {
  return Error{ErrorCode::kUnavailable,
               fmt::format("master {}:{}: cannot resolve the host name ({})", address.host,
                           address.port, why)};
}

Result<HostAddresses> ask(const Question& question) {
  try {
    return question.look_up(question.address);
  } catch (const std::exception& exception) {
    Error error = look_up_error(question.address, exception.what());
    error.code = ErrorCode::kInternal;
    return error;
  }
}

}  // namespace

Result<HostAddresses> ask_system(const Address& address) {
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int fault =
      ::getaddrinfo(address.host.c_str(), std::to_string(address.port).c_str(), &hints, &found);
  if (fault != 0) return look_up_error(address, ::gai_strerror(fault));
  return HostAddresses(found, ::freeaddrinfo);
}

Result<HostAddresses> look_up_until(const std::atomic<bool>& stop, const LookUp& look_up,
                                    const Address& address) {
  const auto question = std::make_shared<Question>();
  question->look_up = look_up;
  question->address = address;
  std::thread([question] {
    auto answer = ask(*question);
    const std::lock_guard lock(question->mutex);
    question->answer = std::move(answer);
    question->changed.notify_all();
  }).detach();
  std::unique_lock lock(question->mutex);
  while (
      !question->changed.wait_for(lock, kStopSlice, [&] { return question->answer.has_value(); })) {
    if (stop) return look_up_error(address, "stopped while it was being looked up");
  }
  return *std::move(question->answer);
}

}  // namespace speedo
