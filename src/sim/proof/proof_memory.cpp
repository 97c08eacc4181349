#include "sim/proof/proof_memory.hpp"

namespace speedo::sim {

class ProofMemory::Exchange : public MemoryExchange {
 public:
  Exchange(ProofMemory& memory, std::string door, std::function<void(const std::string&)> on_offer)
      : memory_(memory), door_(std::move(door)), on_offer_(std::move(on_offer)) {}

  Result<std::shared_ptr<const SharedRecord>> offer(std::string_view key,
                                                    const RecordMemory& memory) override {
    const auto found = memory_.doors_.find(door_);
    const auto store =
        found != memory_.doors_.end() && found->second.is_alive() ? found->second.store.lock()
                                                                  : nullptr;
    if (!store) return Error{ErrorCode::kUnavailable, "nobody is at the door"};
    SPEEDO_ASSIGN(auto weights, meet_directly(store, found->second.term)->offer(key, memory));
    SPEEDO_ASSIGN(auto home, SharedRecord::make(memory.board(), memory.values()));
    memory_.homes_[std::string(key)] = std::move(home);
    on_offer_(std::string(key));
    return weights;
  }

 private:
  ProofMemory& memory_;
  const std::string door_;
  const std::function<void(const std::string&)> on_offer_;
};

std::string ProofMemory::open(const std::string& name, const std::shared_ptr<SharedStore>& store,
                              std::uint64_t term, std::function<bool()> is_alive) {
  doors_[name] = {.store = store, .term = term, .is_alive = std::move(is_alive)};
  return name;
}

std::unique_ptr<MemoryExchange> ProofMemory::find(
    const std::string& door, std::function<void(const std::string&)> on_offer) {
  return std::make_unique<Exchange>(*this, door, std::move(on_offer));
}

std::optional<std::vector<float>> ProofMemory::contribution(const std::string& key,
                                                            std::uint64_t run) const {
  const auto home = homes_.find(key);
  const auto newest = home == homes_.end() ? std::nullopt : home->second->newest();
  if (!newest || newest->info.version != run) return std::nullopt;
  std::vector<float> values;
  for (std::size_t chunk = 0; chunk < chunk_count(newest->info.element_count); ++chunk) {
    const std::span<const float> part = home->second->chunk(*newest, chunk);
    values.insert(values.end(), part.begin(), part.end());
  }
  return values;
}

std::pair<std::uint64_t, std::uint64_t> ProofMemory::owner_of(const std::string& key) {
  const std::string owner = key.substr(contribution_key_prefix().size());
  return {std::stoull(owner), std::stoull(owner.substr(owner.find('/') + 1))};
}

}  // namespace speedo::sim
