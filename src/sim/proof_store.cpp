#include "sim/proof_store.hpp"

#include <algorithm>
#include <utility>

#include <speedo/store/parameter_store.hpp>

#include "store/mastership.hpp"

namespace speedo::sim {
namespace {

Error unreachable() { return {ErrorCode::kUnavailable, "the store does not answer"}; }

bool writes(const KvOperation& operation) {
  return operation.kind != KvOperation::Kind::kGetExact &&
         operation.kind != KvOperation::Kind::kGetWhole;
}

// A chunk or the manifest of one; what masters put back for elastic workers is none.
bool is_contribution(const KvOperation& operation) {
  return operation.kind == KvOperation::Kind::kSet &&
         operation.key.find(':' + contribution_key_prefix()) != std::string::npos &&
         operation.key.find("/local:") == std::string::npos;
}

}  // namespace

// Whether anything of what was there is gone, or older.
bool StoreServer::lose(MemoryImage survivors) {
  const MemoryImage before = map_.image();
  const bool same = std::ranges::equal(before, survivors, [](const auto& a, const auto& b) {
    return a.first == b.first && *a.second.bytes == *b.second.bytes;
  });
  map_.set_image(std::move(survivors));
  return !same;
}

void StoreServer::restart(Survives what, Instant down_time, const FaultMark& mark) {
  bool lost = false;
  if (what == Survives::kAllButLastSecond) lost = lose(image_);
  if (what == Survives::kNothing) lost = lose({});
  mark.struck();
  if (lost) mark.felt();
  life_ += 1;
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
  operation->server = life_;
  if (damaged_ && is_contribution(*operation)) damage(operation->key);
  if (on_done) on_done(*operation);
}

// In the middle of the value: of a chunk that is a float, of a manifest what follows its checksum.
void StoreServer::damage(const std::string& key) {
  const auto damaged = std::exchange(damaged_, nullptr);
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
  damaged(key);
}

bool StoreClient::reachable() const {
  if (!server_.up()) server_.down_.felt();
  if (partition_) partition_->felt();
  return server_.up() && !partition_;
}

void StoreClient::strike_at_operation(std::uint64_t count, Strike strike) {
  countdown_ = count;
  strike_ = std::move(strike);
}

bool StoreClient::strike_now(const KvOperation& operation) {
  if (!strike_ || countdown_-- > 0) return false;
  std::exchange(strike_, nullptr)(operation);
  return true;
}

void StoreClient::submit(KvPtr operation) {
  const bool with_effect = random_.below(2) == 0;
  if (strike_ && countdown_ == 0 && with_effect && reachable() && process_.alive()) {
    server_.execute(operation);
  }
  strike_now(*operation);
  if (!process_.alive() || !reachable()) return operation->complete(unreachable());
  const bool fails = faults_.error > 0.0 && random_.uniform() < faults_.error;
  if (!fails || with_effect) server_.execute(operation);
  if (fails) {
    faults_.mark.felt();
    return operation->complete(unreachable());
  }
  const bool again =
      faults_.repeat > 0.0 && writes(*operation) && random_.uniform() < faults_.repeat;
  if (!again) return;
  faults_.mark.felt();
  server_.execute(operation);
}

Result<std::vector<std::string>> StoreClient::list(std::string_view prefix) {
  if (!process_.alive() || !reachable()) return unreachable();
  return server_.map().list(prefix);
}

}  // namespace speedo::sim
