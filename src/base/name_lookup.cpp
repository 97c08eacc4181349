#include "base/name_lookup.hpp"

#include <chrono>
#include <future>
#include <string>
#include <thread>
#include <utility>

#include <sys/socket.h>

#include <fmt/format.h>

namespace speedo {
namespace {

constexpr std::chrono::milliseconds kStopSlice{50};

Error look_up_error(const std::string& host, const std::string& why) {
  return Error{ErrorCode::kUnavailable,
               fmt::format("cannot resolve the host name '{}' ({}); give one that this machine "
                           "knows",
                           host, why)};
}

Result<HostAddresses> ask_system_with(int flags, const std::string& host, int port) {
  addrinfo hints{};
  hints.ai_flags = flags;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  const int fault = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &hints, &found);
  if (fault != 0) return look_up_error(host, ::gai_strerror(fault));
  return HostAddresses(found, ::freeaddrinfo);
}

}  // namespace

Result<HostAddresses> read_numbers(const std::string& host, int port) {
  return ask_system_with(AI_NUMERICHOST, host, port);
}

Result<HostAddresses> ask_system(const std::string& host, int port) {
  return ask_system_with(0, host, port);
}

Result<HostAddresses> look_up_until(const std::function<bool()>& stop, const LookUp& look_up,
                                    const std::string& host, int port) {
  if (auto numbers = read_numbers(host, port)) return numbers;
  std::packaged_task<Result<HostAddresses>()> task(
      [look_up, host, port] { return look_up(host, port); });
  std::future<Result<HostAddresses>> answer = task.get_future();
  std::thread(std::move(task)).detach();
  while (answer.wait_for(kStopSlice) != std::future_status::ready) {
    if (stop()) return look_up_error(host, "no answer so far");
  }
  return answer.get();
}

std::string numeric_host(const addrinfo& address) {
  char text[NI_MAXHOST] = {};
  const int fault = ::getnameinfo(address.ai_addr, address.ai_addrlen, text, sizeof(text), nullptr,
                                  0, NI_NUMERICHOST);
  return fault == 0 ? text : "";
}

}  // namespace speedo
