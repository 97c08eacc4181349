#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "store/shared/memory_exchange.hpp"

namespace speedo::sim {

// The one machine whose processes share memory: the doors of its masters, and what workers have
// offered there. The memory is real; a process that dies leaves it as it is.
// Thread safety: one thread at a time.
class ProofMemory {
 public:
  // A master's door, open while its process lives. Its address is the name.
  std::string open(const std::string& name, const std::shared_ptr<SharedStore>& store,
                   std::uint64_t term, std::function<bool()> is_alive);
  // A worker at a door; `on_offer` is told each key whose memory the master has taken.
  std::unique_ptr<MemoryExchange> find(const std::string& door,
                                       std::function<void(const std::string& key)> on_offer);

  bool was_offered(const std::string& key) const { return homes_.contains(key); }
  // What lies under a contribution's key, if it is this run's.
  std::optional<std::vector<float>> contribution(const std::string& key, std::uint64_t run) const;
  // Term and worker of a contribution's key.
  static std::pair<std::uint64_t, std::uint64_t> owner_of(const std::string& key);

 private:
  struct Door {
    std::weak_ptr<SharedStore> store;
    std::uint64_t term = 0;
    std::function<bool()> is_alive;
  };
  class Exchange;

  std::map<std::string, Door> doors_;
  std::map<std::string, std::shared_ptr<const SharedRecord>> homes_;  // by key
};

}  // namespace speedo::sim
