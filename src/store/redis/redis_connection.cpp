#include "store/redis/redis_connection.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include <speedo/base/assert.hpp>
#include <speedo/base/thread_name.hpp>

#include "base/descriptor_fault.hpp"
#include "base/log.hpp"
#include "store/redis/redis_error.hpp"
#include "store/redis/redis_error_counts.hpp"
#include "store/redis/redis_retry.hpp"

namespace speedo {
namespace {

// What an operation costs besides its value, so that small ones are spread too.
constexpr std::size_t kOperationBytes = 256;
// Requests gathered into one system call.
constexpr std::size_t kGatherMax = 8;
// How often a refusal of the same request, or of connections, is not believed.
constexpr int kDoubtsMax = 2;

Error unheard(const Error& refusal) { return {ErrorCode::kUnavailable, refusal.message}; }

// In the server's memory (OOM) or on its disk (MISCONF).
bool lacks_room(ErrorCode code) {
  return code == ErrorCode::kFull || code == ErrorCode::kCannotWrite;
}

}  // namespace

RedisConnection::RedisConnection(const RedisOptions& options, std::unique_ptr<RedisSession> session,
                                 std::shared_ptr<std::atomic<std::uint64_t>> incarnations,
                                 Extras extras)
    : options_(options),
      where_(to_string(options.address)),
      extras_(std::move(extras)),
      incarnations_(std::move(incarnations)),
      wake_fd_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      session_(std::move(session)) {
  if (wake_fd_ < 0) given_up_ = broken(ErrorCode::kFull, descriptor_fault(errno));
  if (session_) server_ = session_->server();
  thread_ = std::thread([this] { run(); });
}

RedisConnection::~RedisConnection() {
  stopping_.store(true);
  eventfd_write(wake_fd_, 1);
  thread_.join();
  if (wake_fd_ >= 0) close(wake_fd_);
}

void RedisConnection::submit(RedisTask task) {
  const std::size_t bytes = task.operation->bytes() + kOperationBytes;
  load_.fetch_add(bytes, std::memory_order_relaxed);
  bool was_empty = false;
  {
    const std::lock_guard lock(mutex_);
    was_empty = submitted_.empty();
    submitted_.push_back({.task = std::move(task), .bytes = bytes, .no_asking = std::nullopt});
  }
  if (was_empty) eventfd_write(wake_fd_, 1);
}

void RedisConnection::stop_waiting() {
  Clock::time_point never{};
  hurried_at_.compare_exchange_strong(never, Clock::now());
  eventfd_write(wake_fd_, 1);
}

void RedisConnection::follow(const NamedPrimary& primary) {
  {
    const std::lock_guard lock(mutex_);
    primary_ = primary;
  }
  eventfd_write(wake_fd_, 1);
}

void RedisConnection::run() {
  name_thread("redis");
  while (true) {
    take_submitted();
    go_to_primary();
    if (stopping_.load()) break;
    if (given_up_) give_up(*given_up_);
    if (waiting_.empty() && in_flight_.empty()) {
      wait_for_socket();
    } else if (!session_) {
      try_connect();
    } else {
      exchange();
    }
  }
  give_up(broken(ErrorCode::kUnavailable, "the store is being closed"));
}

void RedisConnection::take_submitted() {
  const std::lock_guard lock(mutex_);
  while (!submitted_.empty()) {
    waiting_.push_back(std::move(submitted_.front()));
    submitted_.pop_front();
  }
}

// Others of the Sentinels may still name the server that was replaced: this one is asked first.
void RedisConnection::go_to_primary() {
  std::unique_lock lock(mutex_);
  const auto primary = std::exchange(primary_, std::nullopt);
  lock.unlock();
  if (!primary) return;
  auto& sentinels = options_.address.sentinels;
  const auto known = std::ranges::find_if(sentinels, [&](const RedisSentinel& each) {
    return each.host == primary->by.host && each.port == primary->by.port;
  });
  std::rotate(sentinels.begin(), known, known + 1);
  const RedisSession::Known now{primary->host, primary->port, primary->epoch};
  // At the end another server has its own time to answer.
  if (!now.is_there(std::exchange(known_, now))) last_progress_ = Clock::now();
  if (!session_) return;
  const RedisAddress& there = session_->address();
  if (there.host != now.host || there.port != now.port) drop_session();
}

RedisConnection::Clock::time_point RedisConnection::patience_end() const {
  if (!is_hurried()) return last_progress_ + options_.command_timeout;
  return std::max(last_progress_, hurried_at_.load()) +
         std::min(options_.command_timeout, kStoreEndPatience);
}

// While nothing can wake the thread it looks by itself.
int RedisConnection::poll_time(std::int64_t left_ms) const {
  constexpr std::int64_t kLook = 100;
  return static_cast<int>(wake_fd_ < 0 && (left_ms < 0 || left_ms > kLook) ? kLook : left_ms);
}

// Waits until the socket or submit() has something to do, or for the time-out of what is in flight.
void RedisConnection::wait_for_socket() {
  std::array<pollfd, 2> polled{};
  polled[0] = {wake_fd_, POLLIN, 0};
  nfds_t count = 1;
  Clock::time_point until = patience_end();
  if (session_) {
    if (in_flight_.empty()) held_until_ = {};
    const auto [held_out, held_in] = held_until_;
    const bool has_more = !sending_.empty() || session_->wire().owes();
    const bool sends = has_more && held_out == Clock::time_point{};
    const bool receives = held_in == Clock::time_point{};
    const short events = static_cast<short>((receives ? POLLIN : 0) | (sends ? POLLOUT : 0));
    polled[count++] = {session_->wire().socket(), events, 0};
    for (const Clock::time_point held : held_until_) {
      if (held != Clock::time_point{}) until = std::min(until, held);
    }
  }
  std::int64_t left_ms = -1;
  if (!in_flight_.empty()) {
    const auto left = until - Clock::now();
    left_ms = std::clamp<std::int64_t>(std::chrono::ceil<std::chrono::milliseconds>(left).count(),
                                       0, 3600'000);
  }
  poll(polled.data(), count, poll_time(left_ms));
  if (polled[0].revents != 0) {
    eventfd_t ignored = 0;
    eventfd_read(wake_fd_, &ignored);
  }
  const bool idle = in_flight_.empty() && waiting_.empty();
  if (session_ && idle && polled[1].revents != 0) {
    // Nothing was asked: the server closed the connection. The next operation makes a new one.
    session_.reset();
  }
}

void RedisConnection::sleep_until(Clock::time_point time) {
  while (!stopping_.load()) {
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now()).count();
    if (left <= 0) return;
    pollfd polled{wake_fd_, POLLIN, 0};
    if (poll(&polled, 1, static_cast<int>(left)) > 0) {
      eventfd_t ignored = 0;
      eventfd_read(wake_fd_, &ignored);
    }
    take_submitted();
  }
}

void RedisConnection::try_connect() {
  const auto stop = [this] {
    return stopping_.load() || (is_hurried() && Clock::now() >= patience_end());
  };
  auto session = RedisSession::connect(options_, stale_, {extras_.look_up, stop, known_});
  if (!session) {
    const bool was_let_in = server_ != 0;
    connection_failed(was_let_in && doubts(session.error(), doubts_) ? unheard(session.error())
                                                                     : session.error());
    return;
  }
  doubts_ = 0;
  session_ = std::move(*session);
  stale_.reset();
  incarnations_->fetch_add(1);
  server_ = session_->server();
  replies_.reset();
  last_progress_ = Clock::now();
}

void RedisConnection::exchange() {
  if (in_flight_.empty()) last_progress_ = Clock::now();
  encode_requests();
  const bool sent = send_some();
  const bool received = session_ && receive_some();
  if (!session_) return;
  if (sent || received) {
    last_progress_ = Clock::now();
  } else if (in_flight_.empty() || Clock::now() < patience_end()) {
    wait_for_socket();
  } else {
    connection_failed(broken(ErrorCode::kTimeout,
                             "no answer in time: is the server overloaded "
                             "or stopped?"));
  }
}

void RedisConnection::encode_requests() {
  if (!waiting_.empty() && waiting_.front().operation().is_abandoned()) drop_abandoned();
  while (!waiting_.empty() &&
         (in_flight_.empty() || in_flight_bytes_ + waiting_.front().bytes <= kStoreWindowBytes)) {
    Queued entry = std::move(waiting_.front());
    waiting_.pop_front();
    // As of now: what a server answered before it restarted must not pass for the next one's.
    KvOperation& operation = entry.operation();
    operation.server = server_ != 0 ? server_ : incarnations_->load();
    if (is_one_server() && !operation.may_be_done_by(operation.server)) {
      failures_ = 0;
      finish(entry, another_incarnation(operation));
      continue;
    }
    entry.awaits_asking = entry.task.asks;
    sending_.emplace_back(entry.task.operation, entry.task.asks);
    in_flight_bytes_ += entry.bytes;
    in_flight_.push_back(std::move(entry));
  }
}

// How many bytes may go; the vectors are cut to them.
std::size_t RedisConnection::allowed(TrafficLimit::Way way, std::span<iovec>& vectors) {
  std::size_t wanted = 0;
  for (const iovec& each : vectors) wanted += each.iov_len;
  if (!options_.limit) return wanted;
  const std::size_t may = options_.limit->take(way, wanted);
  held_until_[static_cast<std::size_t>(way)] =
      may == 0 ? options_.limit->next(way, wanted) : Clock::time_point{};
  std::size_t left = may, count = 0;
  for (; left > 0; ++count) {
    vectors[count].iov_len = std::min(vectors[count].iov_len, left);
    left -= vectors[count].iov_len;
  }
  vectors = vectors.first(count);
  return may;
}

void RedisConnection::used(TrafficLimit::Way way, std::size_t allowed, std::size_t done) {
  if (options_.limit && done < allowed) options_.limit->give_back(way, allowed - done);
}

bool RedisConnection::send_some() {
  if (sending_.empty() && !session_->wire().owes()) return false;
  vectors_.clear();
  for (std::size_t i = 0; i < std::min(sending_.size(), kGatherMax); ++i) {
    sending_[i].append_to(vectors_);
  }
  std::span<iovec> vectors(vectors_);
  const std::size_t may = vectors.empty() ? 0 : allowed(TrafficLimit::Way::kOut, vectors);
  if (may == 0 && !sending_.empty()) return false;
  const auto taken = session_->wire().send(vectors);
  const std::size_t sent = taken ? taken->value_or(0) : 0;
  used(TrafficLimit::Way::kOut, may, sent);
  if (!taken) {
    connection_failed(broken(taken.error().code, taken.error().message));
    return false;
  }
  if (!taken->has_value()) {
    sending_.clear();
    return false;
  }
  std::size_t left = sent;
  while (!sending_.empty()) {
    left = sending_.front().sent(left);
    if (!sending_.front().complete()) break;
    sending_.pop_front();
  }
  return sent > 0;
}

bool RedisConnection::receive_some() {
  std::span<iovec> into = replies_.receive_into();
  const std::size_t may = allowed(TrafficLimit::Way::kIn, into);
  if (may == 0) return false;
  const auto received = session_->wire().receive(into);
  used(TrafficLimit::Way::kIn, may, received ? *received : 0);
  if (!received) {
    connection_failed(broken(received.error().code, received.error().message));
    return false;
  }
  if (*received == 0) return false;
  replies_.received(*received);
  if (!in_flight_.empty()) in_flight_.front().operation().count_progress();
  return take_replies();
}

// False if the connection had to be given up.
bool RedisConnection::take_replies() {
  while (true) {
    // What comes unasked can only be an error: the server says why it closes the connection.
    const BulkSink sink = in_flight_.empty() ? BulkSink{} : sink_of(in_flight_.front().operation());
    auto reply = replies_.next(sink);
    if (!reply) {
      connection_failed(broken(ErrorCode::kUnavailable, reply.error().message));
      return false;
    }
    if (!reply->has_value()) return true;
    if (in_flight_.empty()) {
      connection_failed(redis_error((*reply)->text, where_));
      return false;
    }
    if (!take_reply(**reply)) return false;
  }
}

bool RedisConnection::take_reply(const ReplyReader::Reply& reply) {
  Queued& entry = in_flight_.front();
  if (entry.awaits_asking) return take_asking_reply(reply);
  std::optional<Error> error = error_in(reply, entry.operation());
  if (reply.kind == ReplyReader::Kind::kError) {
    // An answer to half a request: the server wants no more of it, and will close.
    const bool half_sent = in_flight_.size() <= sending_.size();
    const auto redirect = extras_.give_back && !half_sent && !entry.no_asking
                              ? redirect_of(reply.text, options_.address)
                              : std::nullopt;
    if (redirect) {
      Queued refused = std::move(entry);
      in_flight_.pop_front();
      in_flight_bytes_ -= refused.bytes;
      give_back(refused, {*error, options_.address, redirect});
      return true;
    }
    const bool is_doubtful = error->code == ErrorCode::kInternal && doubts(*error, entry.doubts);
    if (half_sent || is_doubtful || is_transient(error->code)) {
      connection_failed(is_doubtful ? unheard(*error) : *error);
      return false;
    }
  }
  if (error && error->code != ErrorCode::kNotFound) count_redis_error(error->code);
  // There may be room again: whoever waits for a server that is away waits for that, too.
  if (error && lacks_room(error->code)) error->code = ErrorCode::kUnavailable;
  if (entry.no_asking) error = std::move(entry.no_asking);
  done_with_front(std::move(error));
  return true;
}

// A refusal may be the answer to what became of a request on its way: only what a server says each
// time is believed. On a cluster others ask again.
bool RedisConnection::doubts(const Error& error, int& so_far) const {
  if (is_transient(error.code) || extras_.give_back || so_far == kDoubtsMax) return false;
  so_far += 1;
  return true;
}

// The reply to the operation follows in any case.
bool RedisConnection::take_asking_reply(const ReplyReader::Reply& reply) {
  Queued& entry = in_flight_.front();
  entry.awaits_asking = false;
  if (reply.kind != ReplyReader::Kind::kError) return true;
  const Error error = redis_error(reply.text, where_);
  if (is_transient(error.code)) {
    connection_failed(error);
    return false;
  }
  entry.no_asking = error;
  return true;
}

std::optional<Error> RedisConnection::error_in(const ReplyReader::Reply& reply,
                                               KvOperation& operation) {
  using Kind = ReplyReader::Kind;
  if (reply.kind == Kind::kError) {
    const std::string_view key = !operation.key.empty() || operation.keys.empty()
                                     ? std::string_view(operation.key)
                                     : operation.keys.front();
    return redis_error(reply.text, where_,
                       {options_.credentials.user, command_of(operation), key});
  }
  if (reply.kind == Kind::kNil) {
    return Error{ErrorCode::kNotFound, "Redis at " + where_ + ": no key '" + operation.key + "'"};
  }
  if (reply.kind != Kind::kWrongLength) return std::nullopt;
  operation.head.resize(std::min(operation.head.size(), reply.length));
  return Error{ErrorCode::kCorrupt, "Redis at " + where_ + ": key '" + operation.key + "' has " +
                                        std::to_string(reply.length) + " bytes"};
}

void RedisConnection::done_with_front(std::optional<Error> error) {
  failures_ = 0;
  Queued entry = std::move(in_flight_.front());
  in_flight_.pop_front();
  in_flight_bytes_ -= entry.bytes;
  finish(entry, std::move(error));
}

void RedisConnection::give_back(Queued& entry, const RedisRefusal& refusal) {
  extras_.give_back(std::move(entry.task), refusal);
  load_.fetch_sub(entry.bytes, std::memory_order_release);
}

void RedisConnection::give_back_all(const Error& error) {
  take_submitted();
  while (!waiting_.empty()) {
    Queued entry = std::move(waiting_.front());
    waiting_.pop_front();
    give_back(entry, {error, options_.address, std::nullopt});
  }
}

// What had no answer is sent again.
void RedisConnection::drop_session() {
  if (session_) stale_ = session_->client();
  session_.reset();
  sending_.clear();
  while (!in_flight_.empty()) {
    waiting_.push_front(std::move(in_flight_.back()));
    in_flight_.pop_back();
  }
  in_flight_bytes_ = 0;
  drop_abandoned();
}

void RedisConnection::connection_failed(Error error) {
  count_redis_error(error.code);
  drop_session();
  if (++failures_ == 1) first_failure_ = Clock::now();
  if (!is_transient(error.code)) {
    give_up(error);
    return;
  }
  if (is_hurried() && Clock::now() >= patience_end()) {
    given_up_ = error;
    return;
  }
  if (extras_.give_back) {
    if (failures_ == 1 && !waiting_.empty()) warn_of(error);
    give_back_all(error);
    return;
  }
  if (failures_ >= options_.attempts_max || Clock::now() - first_failure_ >= kStoreRetryTime) {
    error.message += " (" + std::to_string(failures_) + " attempts)";
    give_up(error);
    return;
  }
  if (failures_ == 1 && !waiting_.empty()) warn_of(error);
  sleep_until(Clock::now() + backoff(options_, failures_));
}

// While a server is away for minutes, others say so as well.
void RedisConnection::warn_of(const Error& error) {
  if (!warnings_.is_due(steady_clock().now())) return;
  SPEEDO_WARN("{}; trying again", error.message);
}

void RedisConnection::drop_abandoned() {
  std::deque<Queued> kept;
  for (Queued& entry : waiting_) {
    if (entry.operation().is_abandoned()) {
      finish(entry, broken(ErrorCode::kUnavailable, "no longer wanted"));
    } else {
      kept.push_back(std::move(entry));
    }
  }
  waiting_ = std::move(kept);
}

void RedisConnection::give_up(const Error& error) {
  failures_ = 0;
  take_submitted();
  for (std::deque<Queued>* queue : {&in_flight_, &waiting_}) {
    while (!queue->empty()) {
      Queued entry = std::move(queue->front());
      queue->pop_front();
      finish(entry, error);
    }
  }
  in_flight_bytes_ = 0;
}

}  // namespace speedo
