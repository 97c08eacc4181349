#include "store/redis/tls_wire.hpp"

#include <poll.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "gate/key_material.hpp"
#include "gate/tls_channel.hpp"

namespace speedo {
namespace {

// Of one record of TLS, at most.
constexpr std::size_t kSealBytes = 16384;
// An answer to AUTH may repeat the password; longer ones are values.
constexpr std::size_t kAnswerBytes = 4096;
constexpr std::size_t kReadBytes = std::size_t{128} << 10U;

class TlsWire final : public RedisWire {
 public:
  TlsWire(int socket, std::unique_ptr<Channel> channel)
      : RedisWire(socket), channel_(std::move(channel)), read_(kReadBytes) {
    piece_.reserve(kSealBytes);
  }

  Result<void> shake_hands(const RedisPatience& patience);
  Result<std::optional<std::size_t>> send(std::span<const iovec> bytes) override;
  Result<std::size_t> receive(std::span<const iovec> into) override;
  bool holds() const override { return given_ < plain_.size(); }
  bool owes() const override { return !sealed_.empty(); }

 private:
  Result<bool> flush();
  Result<void> take_network();
  Error fail(const Error& error);

  const std::unique_ptr<Channel> channel_;
  std::string sealed_;       // for the socket
  std::string plain_;        // for receive(), from given_ on
  std::size_t given_ = 0;
  std::string piece_;        // one record's worth of what is to be sealed
  std::vector<char> read_;   // what a socket gives at once
  std::optional<Error> failed_;
};

Error TlsWire::fail(const Error& error) {
  failed_ = error;
  if (error.code == ErrorCode::kRefused) {
    failed_->message +=
        ": --redis-tls-ca names the authority of the server's certificate, which is for the name "
        "or address in --redis; --redis-tls-cert is what the server may ask for";
  }
  return *failed_;
}

// False if the server takes no more.
Result<bool> TlsWire::flush() {
  if (sealed_.empty()) return true;
  const iovec vector{sealed_.data(), sealed_.size()};
  SPEEDO_ASSIGN(const std::optional<std::size_t> sent, send_now(socket(), std::span(&vector, 1)));
  if (sent) sealed_.erase(0, *sent);
  return sent.has_value();
}

// What the socket has, through the channel.
Result<void> TlsWire::take_network() {
  const iovec vector{read_.data(), read_.size()};
  SPEEDO_ASSIGN(const std::size_t size, receive_now(socket(), std::span(&vector, 1)));
  if (size == 0) return {};
  const auto taken = channel_->receive({read_.data(), size}, plain_, sealed_);
  // Also to say what is wrong.
  const auto flushed = flush();
  if (!taken) return fail(taken.error());
  SPEEDO_TRY(flushed);
  return {};
}

Result<void> TlsWire::shake_hands(const RedisPatience& patience) {
  SPEEDO_TRY(channel_->begin(sealed_));
  while (!channel_->is_ready()) {
    SPEEDO_TRY(flush());
    SPEEDO_TRY(await_socket(socket(), static_cast<short>(POLLIN | (owes() ? POLLOUT : 0)),
                            patience));
    SPEEDO_TRY(take_network());
  }
  if (const std::string fault = channel_->peer().name_fault; !fault.empty()) {
    channel_->end(sealed_);
    SPEEDO_TRY(flush());
    return fail({ErrorCode::kRefused, fault});
  }
  return {};
}

Result<std::optional<std::size_t>> TlsWire::send(std::span<const iovec> bytes) {
  if (failed_) return *failed_;
  std::size_t taken = 0, offset = 0;
  while (true) {
    SPEEDO_ASSIGN(const bool open, flush());
    if (!open) return std::optional<std::size_t>();
    if (owes()) return std::optional(taken);
    piece_.clear();
    while (!bytes.empty() && piece_.size() < kSealBytes) {
      const iovec& first = bytes.front();
      const std::size_t size = std::min(kSealBytes - piece_.size(), first.iov_len - offset);
      piece_.append(static_cast<const char*>(first.iov_base) + offset, size);
      offset += size;
      if (offset < first.iov_len) break;
      bytes = bytes.subspan(1);
      offset = 0;
    }
    if (piece_.empty()) return std::optional(taken);
    const auto sealed = channel_->send(piece_, sealed_);
    taken += piece_.size();
    wipe(piece_);  // a password may have been in it
    if (!sealed) return fail(sealed.error());
  }
}

Result<std::size_t> TlsWire::receive(std::span<const iovec> into) {
  if (!holds()) {
    if (failed_) return *failed_;
    if (plain_.size() <= kAnswerBytes) wipe(plain_);
    plain_.clear();
    given_ = 0;
    // What came before an error, or the end, comes first.
    const auto taken = take_network();
    if (!taken && plain_.empty()) return taken.error();
  }
  std::size_t given = 0;
  for (const iovec& part : into) {
    const std::size_t size = std::min(part.iov_len, plain_.size() - given_);
    std::memcpy(part.iov_base, plain_.data() + given_, size);
    given_ += size;
    given += size;
  }
  return given;
}

// What certificates are for; no such name for an address in numbers.
bool is_name(const std::string& host) {
  return host.find(':') == std::string::npos &&
         host.find_first_not_of("0123456789.") != std::string::npos;
}

}  // namespace

Result<std::unique_ptr<RedisWire>> open_tls_wire(int socket, const RedisTlsFiles& files,
                                                 const std::string& host,
                                                 const RedisPatience& patience) {
  Descriptor owned(socket);
  SPEEDO_ASSIGN(const TlsContext context,
                caller_context({.certificate = files.certificate,
                                .key = files.key,
                                .authority = files.authority}));
  TlsTerms terms;
  terms.host = host;
  if (is_name(host)) terms.server_name = host;
  SPEEDO_ASSIGN(std::unique_ptr<Channel> channel,
                make_tls_channel(GateSide::kCalls, context, terms));
  auto wire = std::make_unique<TlsWire>(owned.release(), std::move(channel));
  SPEEDO_TRY(wire->shake_hands(patience));
  return std::unique_ptr<RedisWire>(std::move(wire));
}

}  // namespace speedo
