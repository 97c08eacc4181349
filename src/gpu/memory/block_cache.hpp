#pragma once

#include <cstddef>
#include <functional>
#include <list>
#include <map>
#include <mutex>
#include <vector>

#include <speedo/base/result.hpp>

#include "gpu/driver/driver.hpp"
#include "gpu/memory/event_pool.hpp"

namespace speedo::gpu {

// Memory that is given back is kept for who asks next: taking it from CUDA waits for the device. A
// block that is given back while queued work may use it is free when that is done. Any thread.
class BlockCache {
 public:
  // Where memory comes from, and what to call it in errors.
  struct Source {
    std::function<Result<void*>(std::size_t)> allocate;
    std::function<void(void*)> free;
    const char* place = "on the GPU";
  };

  // `streams`: all that work on its memory is queued on. `kept_max`: bytes that may lie unused; 0:
  // none, and every block has exactly the bytes asked for.
  BlockCache(Driver& driver, EventPool& events, Source source, std::vector<StreamHandle> streams,
             std::size_t kept_max);
  // All blocks were given back. Waits for the work that uses them.
  ~BlockCache();
  BlockCache(const BlockCache&) = delete;
  BlockCache& operator=(const BlockCache&) = delete;

  // Memory that no queued work uses; the host may have to wait for that. It holds anything.
  // Requires: bytes > 0. Error: kFull, with the bytes asked for.
  Result<void*> take(std::size_t bytes);
  void give_back(void* memory);
  // Gives all that lies unused back to CUDA.
  void drop_unused();

  struct Usage {
    std::size_t used_bytes = 0, kept_bytes = 0;
  };
  Usage usage() const;
  // The size of the blocks that so many bytes are taken from.
  std::size_t block_bytes(std::size_t bytes) const;

 private:
  struct Unused {
    void* memory = nullptr;
    std::size_t bytes = 0;
    std::vector<EventPool::Mark> after;  // done when nothing uses it any more
  };
  bool is_free(const Unused& block);
  void wait_for(const Unused& block);
  // The block of such a size that needs the least waiting; null: none.
  void* take_unused(std::size_t bytes);
  void keep_within(std::size_t bytes);
  void drop(std::list<Unused>::iterator block);

  Driver& driver_;
  EventPool& events_;
  const Source source_;
  const std::vector<StreamHandle> streams_;
  const std::size_t kept_max_;
  mutable std::mutex mutex_;           // of all below
  std::map<void*, std::size_t> used_;  // bytes of each block
  std::list<Unused> unused_;           // the oldest first
  std::size_t used_bytes_ = 0, kept_bytes_ = 0;
};

}  // namespace speedo::gpu
