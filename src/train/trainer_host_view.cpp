#include "train/trainer_host_view.hpp"

namespace speedo {

HostView::HostView(Device& device, std::size_t count, bool shares)
    : device_(device),
      is_direct_(device.memory() == MemoryKind::kHost),
      memory_(is_direct_ ? 0 : count, shares) {}

std::span<float> HostView::landing(Arena& arena) {
  if (!is_direct_) return memory_.values();
  device_.synchronize();
  return {arena.data(), static_cast<std::size_t>(arena.size())};
}

void HostView::land(Arena& arena, std::size_t offset, std::size_t count) {
  if (is_direct_) return;
  device_.upload(arena.data() + offset, memory_.values().subspan(offset, count));
}

std::span<float> HostView::part(Arena& arena, std::size_t offset, std::size_t count) {
  if (is_direct_) {
    device_.synchronize();
    return {arena.data() + offset, count};
  }
  const std::span<float> part = memory_.values().subspan(offset, count);
  device_.download(part, arena.data() + offset);
  return part;
}

}  // namespace speedo
