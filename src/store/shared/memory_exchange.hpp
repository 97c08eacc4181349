#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include <speedo/base/result.hpp>

#include "store/shared/record_memory.hpp"
#include "store/shared/shared_store.hpp"

namespace speedo {

// Where workers of this machine meet a master to share memory with it. Open as long as it lives.
class MemoryDoor {
 public:
  virtual ~MemoryDoor() = default;
  // How a worker finds it.
  virtual const std::string& address() const = 0;
};

// What a master's door does with an offer: `offered` is what a worker forms `key` in, and is read
// from there from now on; what the weights are formed in is given back. Errors: kMismatch for a key
// that is no contribution's of this term; kNotFound while the weights are in no shared memory.
Result<std::shared_ptr<RecordMemory>> take_offer(SharedStore& store, std::uint64_t term,
                                                 std::string_view key,
                                                 std::shared_ptr<const SharedRecord> offered);

// A worker at the door of its master.
class MemoryExchange {
 public:
  virtual ~MemoryExchange() = default;
  // See take_offer(). kUnavailable: nobody is at that door, or not on this machine, or refuses.
  virtual Result<std::shared_ptr<const SharedRecord>> offer(std::string_view key,
                                                            const RecordMemory& memory) = 0;
};
// One in the master's own process.
std::unique_ptr<MemoryExchange> meet_directly(std::shared_ptr<SharedStore> master,
                                              std::uint64_t term);
using FindDoor = std::function<std::unique_ptr<MemoryExchange>(const std::string& address)>;

// A worker's memory beside its store: what it forms contributions in is given to its master for
// what the master forms the weights in. Where that cannot be, everything goes through the store.
// Thread safety: one thread at a time.
class WorkerMemory {
 public:
  // `key`: of the worker's contributions.
  WorkerMemory(std::shared_ptr<RecordStore> store, std::unique_ptr<MemoryExchange> exchange,
               std::string key);

  const std::shared_ptr<SharedStore>& store() const { return store_; }

  // From now on contributions are formed in `values`, from the first byte on; null: elsewhere.
  void share(const RecordShape& shape, std::shared_ptr<SharedMemory> values);
  // What lies in the memory is about to be overwritten, by this run. Its contribution before has
  // been merged, or never will be.
  void begin_run(std::uint64_t run);
  // The same for another incarnation of the worker, with a memory of its own.
  void withdraw();

 private:
  Result<void> try_to_share(const RecordShape& shape, std::shared_ptr<SharedMemory> values);

  const std::shared_ptr<SharedStore> store_;
  const std::unique_ptr<MemoryExchange> exchange_;
  const std::string key_;
  std::shared_ptr<RecordMemory> memory_;  // null: not shared
  bool has_said_how_ = false;
};

}  // namespace speedo
