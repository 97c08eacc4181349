#include "store/redis/redis_auth.hpp"

#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <span>
#include <string_view>

#include "store/redis/line_end.hpp"
#include "store/redis/redis_error.hpp"

namespace speedo {
namespace {

// Longer answers are cut: an error says at its beginning what it is.
constexpr std::size_t kAnswerBytesMax = 2048;

iovec vector_of(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }

// Takes `sent` bytes off the front.
void advance(msghdr& message, std::size_t sent) {
  while (message.msg_iovlen > 0 && sent >= message.msg_iov->iov_len) {
    sent -= message.msg_iov->iov_len;
    ++message.msg_iov;
    --message.msg_iovlen;
  }
  if (message.msg_iovlen == 0) return;
  message.msg_iov->iov_base = static_cast<char*>(message.msg_iov->iov_base) + sent;
  message.msg_iov->iov_len -= sent;
}

// Gives up without a word: why a server took no more it says in its answer, or by closing.
void send_auth(int socket, const RedisCredentials& credentials) {
  const auto length_of = [](std::string_view text) {
    return "$" + std::to_string(text.size()) + std::string(kLineEnd);
  };
  const std::string_view password = credentials.password.reveal();
  std::string words = std::string(credentials.user.empty() ? "*2" : "*3") + "\r\n$4\r\nAUTH\r\n";
  if (!credentials.user.empty()) {
    words += length_of(credentials.user) + credentials.user;
    words += kLineEnd;
  }
  words += length_of(password);
  std::array<iovec, 3> vectors{vector_of(words), vector_of(password), vector_of(kLineEnd)};
  msghdr message{};
  message.msg_iov = vectors.data();
  message.msg_iovlen = vectors.size();
  while (message.msg_iovlen > 0) {
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent < 0 && errno == EINTR) continue;
    if (sent <= 0) return;
    advance(message, static_cast<std::size_t>(sent));
  }
}

// One line, without its end, written to `answer`.
Result<std::string_view> receive_line(int socket, std::span<char> answer,
                                      const std::string& where) {
  std::size_t size = 0;
  while (size < answer.size()) {
    const ssize_t got = ::recv(socket, answer.data() + size, answer.size() - size, 0);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0 && (errno == EAGAIN || errno == ETIMEDOUT)) {
      return Error{ErrorCode::kTimeout, "Redis at " + where + ": no answer to AUTH in time"};
    }
    if (got <= 0) {
      return Error{ErrorCode::kUnavailable,
                   "Redis at " + where + ": the server closed the connection before AUTH" +
                       (got < 0 ? std::string(": ") + std::strerror(errno) : std::string())};
    }
    size += static_cast<std::size_t>(got);
    const std::string_view text(answer.data(), size);
    if (const std::size_t end = text.find(kLineEnd); end != std::string_view::npos) {
      return text.substr(0, end);
    }
  }
  return std::string_view(answer.data(), size);
}

// A server that does not know the command repeats its arguments: only answers that are known not to
// are shown.
Error refusal(std::string_view answer, const RedisCredentials& credentials,
              const std::string& where) {
  const std::string_view password = credentials.password.reveal();
  const bool repeats = !password.empty() && answer.find(password) != std::string_view::npos;
  Error error = repeats ? Error{} : redis_error(answer, where);
  if (error.code != ErrorCode::kInternal) return error;
  return Error{ErrorCode::kRefused,
               "Redis at " + where +
                   " refused AUTH with an answer that is not shown, as it may repeat the "
                   "password: is this a Redis server that knows AUTH?"};
}

}  // namespace

Result<void> authenticate(int socket, const RedisCredentials& credentials,
                          const std::string& where) {
  if (credentials.user.empty() && credentials.password.empty()) return {};
  send_auth(socket, credentials);
  std::array<char, kAnswerBytesMax> answer{};
  const auto line = receive_line(socket, answer, where);
  Result<void> done;
  if (!line) {
    done = line.error();
  } else if (!line->starts_with('+')) {
    done = refusal(line->substr(line->starts_with('-') ? 1 : 0), credentials, where);
  }
  ::explicit_bzero(answer.data(), answer.size());
  return done;
}

}  // namespace speedo
