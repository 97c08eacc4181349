#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/core/parameter_arena.hpp>

namespace speedo {

// Arenas as the host sees them: themselves where the backend's memory is the host's, else copies in
// memory for one arena. Thread safety: one thread at a time.
class HostView {
 public:
  // Arenas have `count` elements.
  HostView(Backend& backend, std::size_t count);

  // Whether part() gives the arena itself.
  bool is_direct() const { return is_direct_; }
  // Where a whole arena's new values are put before land().
  std::span<float> landing(Arena& arena);
  void land(Arena& arena);
  // The elements [offset, offset + count) of an arena, or a copy of them at the same place of the
  // one copy's memory.
  std::span<float> part(Arena& arena, std::size_t offset, std::size_t count);

 private:
  Backend& backend_;
  const bool is_direct_;
  std::vector<float> memory_;
};

}  // namespace speedo
