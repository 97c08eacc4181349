#include "store/redis/redis_connections.hpp"

#include <algorithm>
#include <utility>

#include "base/random_bits.hpp"

namespace speedo {
namespace {

// Manifests, blobs, who is master: they must not wait behind chunks.
constexpr std::size_t kSmallBytes = std::size_t{64} << 10U;

}  // namespace

// Counted from a random number: the incarnations of a cluster's nodes are told apart by them.
RedisConnections::RedisConnections(const RedisOptions& options,
                                   std::unique_ptr<RedisSession> session, GiveBack give_back)
    : options_(options),
      give_back_(std::move(give_back)),
      incarnations_(std::make_shared<std::atomic<std::uint64_t>>(random_bits())) {
  for (int i = 0; i < std::max(1, options.connections); ++i) {
    connections_.push_back(
        std::make_unique<RedisConnection>(options, std::move(session), incarnations_,
                                          RedisConnection::Extras{.give_back = give_back_}));
  }
  if (options.address.sentinels.empty()) return;
  watch_ = std::make_unique<PrimaryWatch>(
      options, [this](const NamedPrimary& primary) { follow(primary); });
}

void RedisConnections::follow(const NamedPrimary& primary) {
  for (const auto& connection : connections_) connection->follow(primary);
  const std::lock_guard lock(mutex_);
  primary_ = primary;
  if (small_) small_->follow(primary);
}

void RedisConnections::submit(RedisTask task) {
  if (watch_ && hurried_) watch_->ask_at_end();
  const auto least =
      std::min_element(connections_.begin(), connections_.end(),
                       [](const auto& a, const auto& b) { return a->load() < b->load(); });
  if (task.operation->bytes() <= kSmallBytes && (*least)->load() > kSmallBytes) {
    small_connection().submit(std::move(task));
  } else {
    (*least)->submit(std::move(task));
  }
}

RedisConnection& RedisConnections::small_connection() {
  const std::lock_guard lock(mutex_);
  if (!small_) {
    RedisOptions options = options_;
    options.limit = nullptr;
    small_ = std::make_unique<RedisConnection>(options, nullptr, incarnations_,
                                               RedisConnection::Extras{.give_back = give_back_});
    if (primary_) small_->follow(*primary_);
    if (hurried_) small_->stop_waiting();
  }
  return *small_;
}

void RedisConnections::stop_waiting() {
  for (const auto& connection : connections_) connection->stop_waiting();
  const std::lock_guard lock(mutex_);
  hurried_ = true;
  if (small_) small_->stop_waiting();
}

bool RedisConnections::is_idle() {
  const std::lock_guard lock(mutex_);
  return std::all_of(connections_.begin(), connections_.end(),
                     [](const auto& each) { return each->load() == 0; }) &&
         (!small_ || small_->load() == 0);
}

}  // namespace speedo
