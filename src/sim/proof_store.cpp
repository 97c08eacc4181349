#include "sim/proof_store.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/limits.hpp>
#include <speedo/store/layout.hpp>
#include <speedo/store/record_store.hpp>

#include "store/mastership.hpp"

namespace speedo::sim {
namespace {

// Of so many requests that could share a round trip, one does not.
constexpr std::uint64_t kSharing = 8;

Error unreachable() { return {ErrorCode::kUnavailable, "the store does not answer"}; }

// A chunk or the manifest of one, or of the step that is made of several; a worker's state is none.
bool is_contribution(const KvOperation& operation) {
  const auto has = [&](const std::string& part) {
    return operation.key.find(part) != std::string::npos;
  };
  return operation.kind == KvOperation::Kind::kSet &&
         (has("/step:") || (has(':' + contribution_key_prefix()) && !has("/state:")));
}

}  // namespace

// Whether anything of what was there is gone, or older.
bool StoreServer::come_back_with(MemoryImage survivors) {
  const MemoryImage before = map_.image();
  const bool same = std::ranges::equal(before, survivors, [](const auto& a, const auto& b) {
    return a.first == b.first && *a.second.bytes == *b.second.bytes && a.second.end == b.second.end;
  });
  map_.set_image(std::move(survivors));
  return !same;
}

void StoreServer::restart(Survives what, Instant down_time, const FaultMark& mark) {
  MemoryImage survivors;
  if (what == Survives::kAll) survivors = map_.image();
  if (what == Survives::kAllButLastSecond) survivors = image_;
  const bool lost = come_back_with(std::move(survivors));
  mark.struck();
  if (lost) mark.felt();
  up_at_ = queue_.now() + down_time;
  down_ = what == Survives::kAll ? mark : FaultMark();
  if (on_restart) on_restart(lost);
}

void StoreServer::restart_at_operation(std::uint64_t count, Survives what,
                                       std::function<void()> strike) {
  restart_ = Restart{count, what, std::move(strike)};
}

void StoreServer::execute(const KvPtr& operation) {
  if (restart_ && restart_->countdown-- == 0) {
    const Restart due = std::move(*restart_);
    restart_.reset();
    due.strike();
    restart(due.what, Instant{0});
  }
  const bool by_master = operation->kind == KvOperation::Kind::kSet ||
                         operation->kind == KvOperation::Kind::kErase;
  if (ignores_fences && by_master && operation->master) {
    const std::optional<KvMaster> master = std::exchange(operation->master, std::nullopt);
    map_.submit(operation);
    operation->master = master;
    operation->text = encode_answer({});
  } else {
    map_.submit(operation);
  }
  if (!operation->may_be_done_by(operation->server)) return;
  if (on_done) on_done(*operation);
  if (damaged_ && is_contribution(*operation)) damage(operation->key);
}

void StoreServer::damage(const std::string& key) {
  const auto damaged = std::exchange(damaged_, nullptr);
  if (flip_bit(key)) damaged(key);
}

// In the middle: of a chunk that is a value, of a manifest what follows its checksum.
bool StoreServer::flip_bit(const std::string& key) {
  const KvPtr read = get_whole(key);
  map_.submit(read);
  if (read->error || read->text.empty()) return false;
  auto write = std::make_shared<KvOperation>();
  write->kind = KvOperation::Kind::kSet;
  write->key = key;
  write->head = read->text;
  const std::size_t head = key.ends_with(":m") ? 0 : kChunkHeadBytes;
  write->head[(head + write->head.size()) / 2] ^= 1;
  map_.submit(write);
  return true;
}

bool StoreClient::reachable() const {
  if (!server_.up()) server_.down_.felt();
  if (partition_) partition_->felt();
  return server_.up() && !partition_;
}

void StoreClient::strike_at_operation(std::uint64_t count, Strike strike) {
  strike_ = std::make_shared<StrikePlan>();
  strike_->countdown = count;
  strike_->strike = std::move(strike);
}

bool StoreClient::is_struck_next(const KvOperation& operation) const {
  if (!strike_ || !strike_->strike) return false;
  if (strike_->set_key.empty()) return strike_->countdown == 0;
  return operation.kind == KvOperation::Kind::kSet && operation.key == strike_->set_key;
}

bool StoreClient::strike_now(const KvOperation& operation) {
  if (!is_struck_next(operation)) {
    if (strike_ && strike_->countdown > 0) strike_->countdown -= 1;
    return false;
  }
  const auto plan = std::exchange(strike_, nullptr);
  std::exchange(plan->strike, nullptr)(operation);
  return true;
}

// Whether the server is there, sooner or later.
bool StoreClient::reach() {
  Instant pause = kStoreBackoffFirst;
  for (int attempt = 1; alive() && !reachable(); ++attempt) {
    if (stops_waiting_ || attempt >= kStoreAttemptsMax || Fiber::current() == nullptr) return false;
    platform_.pause(pause);
    pause = std::min<Instant>(2 * pause, kStoreBackoffMax);
  }
  return alive();
}

void StoreClient::submit(KvPtr operation) {
  take_time();
  if (reach()) {
    execute(operation);
    used_at_ = platform_.clock().now();
  } else {
    fail(operation, false);
  }
  // The release of a job comes from a destructor, which must go on.
  if (operation->kind != KvOperation::Kind::kRelease) platform_.leave_if_dead();
}

// Requests that are made at once share a round trip, but for some, so that others come in between.
void StoreClient::take_time() {
  const bool shares = used_at_ == platform_.clock().now() && random_.below(kSharing) != 0;
  if (mean_time_ == Instant{0} || shares) return;
  const float time = static_cast<float>(mean_time_.count()) * random_.uniform(0.5F, 1.5F);
  platform_.pause(Instant{static_cast<Instant::rep>(time)});
}

void StoreClient::execute_at_server(const KvPtr& operation) {
  server_.execute(operation);
  if (on_executed) on_executed(*operation);
}

void StoreClient::fail(const KvPtr& operation, bool was_executed) {
  failures_ += 1;
  if (was_executed && on_unanswered) on_unanswered(*operation);
  operation->complete(unreachable());
}

void StoreClient::execute(const KvPtr& operation) {
  const bool with_effect = random_.below(2) == 0;
  const bool is_struck_after = with_effect && is_struck_next(*operation);
  if (is_struck_after) execute_at_server(operation);
  // Whoever is stopped by the strike goes on from here.
  if (strike_now(*operation)) platform_.pause(Instant{0});
  if (!alive() || !reachable()) return fail(operation, is_struck_after);
  // Who was stopped before the answer came asks again.
  if (is_struck_after && on_unanswered) on_unanswered(*operation);
  const bool fails = faults_.error > 0.0 && random_.uniform() < faults_.error;
  if (!fails || with_effect) execute_at_server(operation);
  if (fails) {
    faults_.mark.felt();
    return fail(operation, with_effect);
  }
  const bool again =
      faults_.repeat > 0.0 && !operation->is_read() && random_.uniform() < faults_.repeat;
  if (!again) return;
  faults_.mark.felt();
  execute_at_server(operation);
}

Result<std::vector<std::string>> StoreClient::list(std::string_view prefix) {
  if (reach()) return server_.map().list(prefix);
  platform_.leave_if_dead();
  return unreachable();
}

}  // namespace speedo::sim
