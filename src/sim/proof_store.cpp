#include "sim/proof_store.hpp"

#include <utility>

#include "store/mastership.hpp"

namespace speedo::sim {
namespace {

Error unreachable() { return {ErrorCode::kUnavailable, "the store does not answer"}; }

bool writes(const KvOperation& operation) {
  return operation.kind != KvOperation::Kind::kGetExact &&
         operation.kind != KvOperation::Kind::kGetWhole;
}

}  // namespace

void StoreServer::restart(Survives what, Instant down_time) {
  if (what == Survives::kAllButLastSecond) map_.set_image(image_);
  if (what == Survives::kNothing) map_.set_image({});
  life_ += 1;
  up_at_ = queue_.now() + down_time;
  if (on_restart) on_restart(what != Survives::kAll);
}

void StoreServer::restart_at_operation(std::uint64_t count, Survives what) {
  restart_ = Restart{count, what};
}

void StoreServer::execute(const KvPtr& operation) {
  if (restart_ && restart_->countdown-- == 0) {
    const Survives what = restart_->what;
    restart_.reset();
    restart(what, Instant{0});
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
  operation->server = life_;
  const bool is_set = operation->kind == KvOperation::Kind::kSet;
  if (is_set && !damage_.empty() && operation->key.find(damage_) != std::string::npos) {
    damage(operation->key);
  }
  if (on_done) on_done(*operation);
}

// In the middle of the value: of a chunk that is a float, of a manifest what follows its checksum.
void StoreServer::damage(const std::string& key) {
  damage_.clear();
  auto read = std::make_shared<KvOperation>();
  read->kind = KvOperation::Kind::kGetWhole;
  read->key = key;
  map_.submit(read);
  if (read->error || read->text.empty()) return;
  auto write = std::make_shared<KvOperation>();
  write->kind = KvOperation::Kind::kSet;
  write->key = key;
  write->head = read->text;
  write->head[write->head.size() / 2] ^= 1;
  map_.submit(write);
}

void StoreClient::strike_at_operation(std::uint64_t count, std::function<void()> strike) {
  countdown_ = count;
  strike_ = std::move(strike);
}

bool StoreClient::strike_now() {
  if (!strike_ || countdown_-- > 0) return false;
  std::exchange(strike_, nullptr)();
  return true;
}

void StoreClient::submit(KvPtr operation) {
  const bool with_effect = random_.below(2) == 0;
  if (strike_ && countdown_ == 0 && with_effect && reachable() && process_.alive()) {
    server_.execute(operation);
  }
  strike_now();
  if (!process_.alive() || !reachable()) return operation->complete(unreachable());
  const bool fails = error_chance > 0.0 && random_.uniform() < error_chance;
  if (!fails || with_effect) server_.execute(operation);
  if (fails) return operation->complete(unreachable());
  const bool again = repeat_chance > 0.0 && writes(*operation) &&
                     random_.uniform() < repeat_chance;
  if (again) server_.execute(operation);
}

Result<void> StoreClient::erase_all(std::string_view prefix) {
  if (!process_.alive() || !reachable()) return unreachable();
  return server_.map().erase_all(prefix);
}

}  // namespace speedo::sim
