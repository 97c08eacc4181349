#include "sim/proof_network.hpp"

#include <algorithm>

namespace speedo::sim {
namespace {

constexpr float kRetransmissionSeconds = 0.8F;

}  // namespace

// Control messages are so short that only the latency counts.
void ProofNetwork::carry(NodeId from, NodeId to, std::size_t /*bytes*/,
                         std::function<void()> arrive) {
  const Path path{from, to};
  if (!may_go(path, !mixes, arrive)) return;
  if (faults.twice > 0.0 && random_.uniform() < faults.twice) {
    faults.mark.felt();
    send(path, !mixes, arrive);
  }
  send(path, !mixes, std::move(arrive));
}

void ProofNetwork::carry_in_order(NodeId from, NodeId to, std::size_t /*bytes*/,
                                  std::function<void()> arrive) {
  const Path path{from, to};
  if (may_go(path, true, arrive)) send(path, true, std::move(arrive));
}

bool ProofNetwork::may_go(const Path& path, bool in_order, std::function<void()>& arrive) {
  if (const auto cut = cuts_.find(path); cut != cuts_.end()) {
    cut->second.felt();
    waiting_[path].push_back({in_order, std::move(arrive)});
    return false;
  }
  if (faults.breaks > 0.0 && random_.uniform() < faults.breaks) {
    faults.mark.felt();
    queue_->after(latency, [this, path] { break_connection(path.first, path.second); });
    return false;
  }
  return true;
}

void ProofNetwork::send(const Path& path, bool in_order, std::function<void()> arrive) {
  const auto usual = static_cast<float>(latency.count());
  auto delay = static_cast<Instant::rep>(usual * random_.uniform(0.5F, mixes ? 4.0F : 1.5F));
  if (faults.late > 0.0 && random_.uniform() < faults.late) {
    faults.mark.felt();
    delay += static_cast<Instant::rep>(random_.uniform() * kRetransmissionSeconds * 1e9F);
  }
  Instant when = queue_->now() + Instant{delay};
  Instant& last = last_[path];
  if (in_order) when = std::max(when, last);
  last = when;
  queue_->at(when, std::move(arrive));
}

void ProofNetwork::heal(NodeId from, NodeId to) {
  const Path path{from, to};
  cuts_.erase(path);
  const auto found = waiting_.find(path);
  if (found == waiting_.end()) return;
  std::vector<Waiting> messages = std::move(found->second);
  waiting_.erase(found);
  for (Waiting& each : messages) send(path, each.in_order, std::move(each.arrive));
}

void ProofNetwork::heal_all() {
  const std::map<Path, FaultMark> cuts = cuts_;
  for (const auto& [path, mark] : cuts) heal(path.first, path.second);
}

}  // namespace speedo::sim
