#include "store/redis/redis_auth.hpp"

#include <string.h>
#include <sys/uio.h>

#include <array>
#include <span>
#include <string_view>

#include "store/redis/line_end.hpp"
#include "store/redis/redis_error.hpp"

namespace speedo {
namespace {

// Longer answers are cut: an error says at its beginning what it is.
constexpr std::size_t kAnswerBytesMax = 2048;

iovec vector_of(std::string_view text) { return {const_cast<char*>(text.data()), text.size()}; }

Result<void> send_auth(RedisWire& wire, const RedisCredentials& credentials,
                       const RedisPatience& patience) {
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
  return send_all(wire, vectors, patience);
}

// One line, without its end, written to `answer`.
Result<std::string_view> receive_line(RedisWire& wire, std::span<char> answer,
                                      const RedisPatience& patience) {
  std::size_t size = 0;
  while (size < answer.size()) {
    SPEEDO_ASSIGN(const std::size_t got, await_bytes(wire, answer.subspan(size), patience));
    size += got;
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

Result<void> authenticate(RedisWire& wire, const RedisCredentials& credentials,
                          const std::string& where, const RedisPatience& patience) {
  if (credentials.user.empty() && credentials.password.empty()) return {};
  const auto sent = send_auth(wire, credentials, patience);
  std::array<char, kAnswerBytesMax> answer{};
  const auto line = sent ? receive_line(wire, answer, patience) : sent.error();
  Result<void> done;
  if (!line) {
    done = Error{line.error().code, "Redis at " + where + ": AUTH: " + line.error().message};
  } else if (!line->starts_with('+')) {
    done = refusal(line->substr(line->starts_with('-') ? 1 : 0), credentials, where);
  }
  ::explicit_bzero(answer.data(), answer.size());
  return done;
}

}  // namespace speedo
