#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <speedo/base/clock.hpp>

#include "store/key_value.hpp"
#include "store/mastership.hpp"

namespace speedo {

struct MemoryEntry {
  std::shared_ptr<const std::string> bytes;
  std::optional<Instant> end;  // none: stays
};
using MemoryImage = std::map<std::string, MemoryEntry, std::less<>>;

// A map in memory. Operations are done before submit() returns.
class MemoryKeyValue : public KeyValue {
 public:
  // `clock`: of leases and expiring keys; outlives the map.
  explicit MemoryKeyValue(const Clock& clock = steady_clock()) : clock_(clock) {}
  void submit(KvPtr operation) override;
  Result<std::vector<std::string>> list(std::string_view prefix) override;

  // Everything in it, leases included. Putting an earlier image (or none) back is what a restart of
  // a server without all of its data is: answers then come from another incarnation of it.
  MemoryImage image() const;
  void set_image(MemoryImage image);
  std::uint64_t incarnation() const { return incarnation_; }

 private:
  void set(KvOperation& operation);
  void get(KvOperation& operation);
  void erase(KvOperation& operation);
  void claim(KvOperation& operation);
  void release(KvOperation& operation);
  // With mutex_ locked.
  const MemoryEntry* find(const std::string& key);
  void store(const std::string& key, std::string bytes, std::chrono::milliseconds lifetime);
  MasterRecord record_of(const KvMaster& master);
  bool may_write(KvOperation& operation);

  const Clock& clock_;
  mutable std::mutex mutex_;
  MemoryImage entries_;
  std::atomic<std::uint64_t> incarnation_{1};
};

}  // namespace speedo
