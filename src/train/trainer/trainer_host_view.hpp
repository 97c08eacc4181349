#pragma once

#include <cstddef>
#include <memory>
#include <span>

#include <speedo/backend/device.hpp>
#include <speedo/core/parameter_arena.hpp>

#include "train/trainer/host_floats.hpp"

namespace speedo {

// Arenas as the host sees them: themselves where the device's memory is the host's, else copies in
// memory for one arena. What is queued on the device is waited for, unless it says otherwise.
// Thread safety: one thread at a time.
class HostView {
 public:
  // Arenas have `count` elements; the device outlives the view. `shares`: copies lie in memory that
  // other processes can be given, else in pinned memory, if it is to be had.
  HostView(Device& device, std::size_t count, bool shares);

  // Whether part() gives the arena itself.
  bool is_direct() const { return is_direct_; }
  // Where a whole arena's new values are put before they land: all of them, or the elements
  // [offset, offset + count).
  std::span<float> landing(Arena& arena);
  void land(Arena& arena) { land(arena, 0, static_cast<std::size_t>(arena.size())); }
  void land(Arena& arena, std::size_t offset, std::size_t count);
  // The elements [offset, offset + count) of an arena, or a copy of them at the same place of the
  // one copy's memory.
  std::span<float> part(Arena& arena, std::size_t offset, std::size_t count);
  // The memory that part() gives views of, from its first byte on; null: this process' alone.
  std::shared_ptr<SharedMemory> shared(const Arena& arena) const {
    return is_direct_ ? arena.shared() : memory_.shared();
  }

  // Copies beside the device's work. From begin_ahead() to end_ahead() part() of that arena is what
  // fetch() has copied, and does not wait. False: there are none, as the arena is the host's, or
  // the memory for it is not to be had.
  bool begin_ahead(Arena& arena);
  // Queues the copy of a part on transfer(), behind all that has been queued on compute() so far.
  // Until that is done nobody asks for the part. Requires: begin_ahead().
  void fetch(std::size_t offset, std::size_t count);
  // Waits for what was fetched. Nothing, if nothing was begun.
  void end_ahead();

 private:
  std::span<float> copies() { return is_pinned_ ? pinned() : memory_.values(); }
  std::span<float> pinned() { return {pinned_.as_floats(), pinned_.bytes() / sizeof(float)}; }
  void take_pinned(std::size_t count);

  Device& device_;
  const bool is_direct_;
  const std::size_t count_;
  Buffer pinned_;            // of one arena, where fetch() can write beside the device's work
  bool is_pinned_ = false;   // copies lie there themselves
  bool is_refused_ = false;  // it is not to be had
  HostFloats memory_;        // else here
  Arena* ahead_ = nullptr;
  StreamEvent fetched_;  // all of it
};

}  // namespace speedo
