#include "store/redis/cluster_key_value.hpp"

#include <algorithm>
#include <set>
#include <utility>

#include <speedo/base/assert.hpp>
#include <speedo/base/thread_name.hpp>

#include "base/log.hpp"
#include "store/redis/cluster_look_up.hpp"
#include "store/redis/key_slot.hpp"
#include "store/redis/node_checks.hpp"
#include "store/redis/redis_retry.hpp"

namespace speedo {
namespace {

// Nodes that learn of a moved slot at different times may send an operation round.
constexpr int kRedirectsMax = 5;

// Of an operation's keys, which have one.
std::uint16_t slot_of(const KvOperation& operation) {
  if (!operation.key.empty()) return key_slot(operation.key);
  if (!operation.keys.empty()) return key_slot(operation.keys.front());
  SPEEDO_ASSERT(operation.master.has_value());
  return key_slot(operation.master->term_key);
}

}  // namespace

Result<std::shared_ptr<ClusterKeyValue>> ClusterKeyValue::open(
    const std::vector<RedisOptions>& nodes) {
  SPEEDO_ASSERT(!nodes.empty());
  const std::vector<RedisAddress> given = addresses_of(nodes);
  SlotMap slots;
  std::vector<std::unique_ptr<RedisSession>> sessions;
  const auto opened = opened_with_retries(nodes.front(), [&]() -> Result<void> {
    SPEEDO_ASSIGN(slots, learn_whole(nodes.front(), given));
    sessions.clear();
    for (const RedisAddress& primary : slots.primaries()) {
      auto session = RedisSession::connect(at_node(nodes.front(), primary), std::nullopt);
      if (!session) {
        return Error{session.error().code, session.error().message + " (a primary of the cluster " +
                                               to_string(given) + ")"};
      }
      SPEEDO_TRY(check_is_guarded(at_node(nodes.front(), primary), **session));
      sessions.push_back(std::move(*session));
    }
    return {};
  });
  SPEEDO_TRY(opened);
  std::shared_ptr<ClusterKeyValue> map(new ClusterKeyValue(nodes, slots));
  const std::lock_guard lock(map->mutex_);
  const std::vector<RedisAddress> primaries = slots.primaries();
  for (std::size_t i = 0; i < primaries.size(); ++i) {
    map->node_at(primaries[i], std::move(sessions[i]));
  }
  return map;
}

ClusterKeyValue::ClusterKeyValue(const std::vector<RedisOptions>& nodes, SlotMap slots)
    : options_(nodes.front()),
      given_(addresses_of(nodes)),
      where_(to_string(given_)),
      slots_(std::move(slots)) {
  thread_ = std::thread([this] { run(); });
}

// Connections first: each ends what it has, or gives it back until it is gone.
ClusterKeyValue::~ClusterKeyValue() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  thread_.join();
  nodes_.clear();
  const Error closed = unavailable("the store is being closed");
  for (const auto& [time, task] : waiting_) end(task, closed);
  for (const Refused& each : refused_) end(each.task, closed);
}

// Requires: the lock.
RedisConnections& ClusterKeyValue::node_at(const RedisAddress& address,
                                           std::unique_ptr<RedisSession> session) {
  std::unique_ptr<RedisConnections>& node = nodes_[to_string(address)];
  if (!node) {
    node = std::make_unique<RedisConnections>(
        at_node(options_, address), std::move(session),
        [this](RedisTask task, const RedisRefusal& refusal) {
          give_back(std::move(task), refusal);
        });
    if (hurried_at_) node->stop_waiting();
  }
  return *node;
}

void ClusterKeyValue::submit(KvPtr operation) {
  const std::lock_guard lock(mutex_);
  submit_locked(RedisTask{.operation = std::move(operation)});
}

// Nodes are taken away under the same lock, so that none goes that is being given something to do.
void ClusterKeyValue::submit_locked(RedisTask task) {
  const std::uint16_t slot = slot_of(*task.operation);
  if (const RedisAddress* const owner = slots_.owner(slot)) {
    node_at(*owner, nullptr).submit(std::move(task));
    return;
  }
  RedisRefusal refusal{unavailable("no node has slot " + std::to_string(slot) +
                                   ": see redis-cli --cluster check " + to_string(given_.front())),
                       given_.front(), RedisRedirect{}};
  refused_.push_back({std::move(task), std::move(refusal)});
  wake_.notify_all();
}

void ClusterKeyValue::give_back(RedisTask task, const RedisRefusal& refusal) {
  const std::lock_guard lock(mutex_);
  refused_.push_back({std::move(task), refusal});
  wake_.notify_all();
}

Result<std::vector<std::string>> ClusterKeyValue::list(std::string_view prefix) {
  std::vector<std::string> keys;
  const auto is_last = [this] {
    const std::lock_guard lock(mutex_);
    return has_no_patience();
  };
  SPEEDO_TRY(with_retries(options_, is_last, [&]() -> Result<void> {
    std::vector<RedisAddress> nodes;
    {
      const std::lock_guard lock(mutex_);
      nodes = slots_.primaries();
    }
    nodes.insert(nodes.end(), given_.begin(), given_.end());
    SPEEDO_ASSIGN(keys, scan_cluster(options_, nodes, prefix));
    return {};
  }));
  return keys;
}

void ClusterKeyValue::stop_waiting() {
  const std::lock_guard lock(mutex_);
  if (!hurried_at_) hurried_at_ = Clock::now();
  for (const auto& [name, node] : nodes_) node->stop_waiting();
  wake_.notify_all();
}

ClusterKeyValue::Counts ClusterKeyValue::counts() const {
  const std::lock_guard lock(mutex_);
  return counts_;
}

void ClusterKeyValue::run() {
  name_thread("redis-cluster");
  while (true) {
    std::deque<Refused> refused = wait_for_refused();
    {
      const std::lock_guard lock(mutex_);
      if (stopping_) {
        for (Refused& each : refused) refused_.push_back(std::move(each));
        return;
      }
    }
    for (Refused& each : refused) handle(each);
    if (is_stale_ && Clock::now() >= learn_at_) learn();
    resubmit_due();
  }
}

// Until there is something to do.
std::deque<ClusterKeyValue::Refused> ClusterKeyValue::wait_for_refused() {
  std::unique_lock lock(mutex_);
  const auto is_wanted = [this] { return stopping_ || !refused_.empty(); };
  auto until = waiting_.empty() ? Clock::time_point::max() : waiting_.begin()->first;
  if (is_stale_) until = std::min(until, learn_at_);
  if (until == Clock::time_point::max()) {
    wake_.wait(lock, is_wanted);
  } else {
    wake_.wait_until(lock, until, is_wanted);
  }
  return std::exchange(refused_, {});
}

void ClusterKeyValue::handle(Refused& refused) {
  RedisTask& task = refused.task;
  const std::optional<RedisRedirect>& redirect = refused.refusal.redirect;
  if (task.operation->is_abandoned()) return end(task, unavailable("no longer wanted"));
  using Kind = RedisRedirect::Kind;
  const std::unique_lock lock(mutex_);
  if (!redirect || redirect->kind == Kind::kDown) {
    ++(redirect ? counts_.down : counts_.broken);
    is_stale_ = true;
    broken_ = refused.refusal.from;
    return fail(std::move(task), refused.refusal.error);
  }
  if (redirect->kind == Kind::kTryAgain) {
    ++counts_.try_again;
    return fail(std::move(task), refused.refusal.error);
  }
  task.asks = redirect->kind == Kind::kAsk;
  ++(task.asks ? counts_.asked : counts_.moved);
  if (!task.asks) {
    slots_.set(redirect->slot, redirect->node);
    is_stale_ = has_moved_ = true;
    hint_ = redirect->node;
  }
  send_to(std::move(task), redirect->node,
          unavailable("its nodes do not agree who has slot " + std::to_string(redirect->slot) +
                      " (" + refused.refusal.error.message + "): see redis-cli --cluster check " +
                      to_string(redirect->node)));
}

// Requires: the lock.
void ClusterKeyValue::send_to(RedisTask task, const RedisAddress& node, const Error& error) {
  if (++task.redirects > kRedirectsMax) return fail(std::move(task), error);
  node_at(node, nullptr).submit(std::move(task));
}

// Requires: the lock.
void ClusterKeyValue::fail(RedisTask task, Error error) {
  const Clock::time_point now = Clock::now();
  task.asks = false;
  task.redirects = 0;
  if (++task.failures == 1) task.first_failure = now;
  if (task.failures >= options_.attempts_max || now - task.first_failure >= kStoreRetryTime ||
      has_no_patience()) {
    error.message += " (" + std::to_string(task.failures) + " attempts, Redis Cluster " + where_ +
                     ")";
    return end(task, error);
  }
  waiting_.emplace(now + backoff(options_, task.failures), std::move(task));
}

void ClusterKeyValue::learn() {
  const auto stop = [this] {
    const std::lock_guard lock(mutex_);
    return stopping_ || has_no_patience();
  };
  auto slots = learn_slots(options_, nodes_to_ask(), stop);
  learn_at_ = Clock::now() + kStoreLearnInterval;
  // Without an answer it matters to what waits; whatever comes later asks for itself.
  is_stale_ = !slots && !waiting_.empty();
  if (!slots) return;
  hint_.reset();
  broken_.reset();
  take_slots(std::move(*slots));
}

std::vector<RedisAddress> ClusterKeyValue::nodes_to_ask() const {
  std::vector<RedisAddress> candidates;
  if (hint_) candidates.push_back(*hint_);
  {
    const std::lock_guard lock(mutex_);
    for (const RedisAddress& each : slots_.primaries()) candidates.push_back(each);
  }
  candidates.insert(candidates.end(), given_.begin(), given_.end());
  std::set<std::string> known;
  if (broken_) known.insert(to_string(*broken_));
  std::vector<RedisAddress> nodes;
  for (const RedisAddress& each : candidates) {
    if (known.insert(to_string(each)).second) nodes.push_back(each);
  }
  if (broken_) nodes.push_back(*broken_);
  return nodes;
}

// Nodes without slots go once they have nothing to do any more.
void ClusterKeyValue::take_slots(SlotMap slots) {
  std::vector<std::unique_ptr<RedisConnections>> gone;  // outlives the lock, which its threads take
  const std::lock_guard lock(mutex_);
  ++counts_.learned;
  std::set<std::string> primaries;
  for (const RedisAddress& each : slots.primaries()) primaries.insert(to_string(each));
  if (std::exchange(has_moved_, false) || !(slots == slots_)) {
    SPEEDO_INFO("Redis Cluster {}: slots are elsewhere now, on {} primaries", where_,
                primaries.size());
  }
  slots_ = std::move(slots);
  for (auto node = nodes_.begin(); node != nodes_.end();) {
    const bool stays = primaries.contains(node->first) || !node->second->is_idle();
    if (!stays) gone.push_back(std::move(node->second));
    node = stays ? std::next(node) : nodes_.erase(node);
  }
}

void ClusterKeyValue::resubmit_due() {
  const std::lock_guard lock(mutex_);
  const Clock::time_point now = Clock::now();
  while (!waiting_.empty() && waiting_.begin()->first <= now) {
    RedisTask task = std::move(waiting_.begin()->second);
    waiting_.erase(waiting_.begin());
    if (task.operation->is_abandoned()) {
      end(task, unavailable("no longer wanted"));
    } else {
      submit_locked(std::move(task));
    }
  }
}

// Requires: the lock.
bool ClusterKeyValue::has_no_patience() const {
  return hurried_at_ && Clock::now() >= *hurried_at_ + std::min(options_.command_timeout,
                                                                kStoreEndPatience);
}

void ClusterKeyValue::end(const RedisTask& task, const Error& error) {
  task.operation->complete(error);
}

Error ClusterKeyValue::unavailable(const std::string& what) const {
  return Error{ErrorCode::kUnavailable, "Redis Cluster " + where_ + ": " + what};
}

}  // namespace speedo
