#include "train/trainer_host_view.hpp"

#include <string_view>

namespace speedo {
namespace {

// The backend whose arenas lie in host memory and are worked on before its calls return.
constexpr std::string_view kHostBackend = "cpu";

}  // namespace

HostView::HostView(Backend& backend, std::size_t count)
    : backend_(backend), is_direct_(backend.name() == kHostBackend) {
  if (!is_direct_) memory_.resize(count);
}

std::span<float> HostView::landing(Arena& arena) {
  if (is_direct_) return {arena.data(), static_cast<std::size_t>(arena.size())};
  return memory_;
}

void HostView::land(Arena& arena) {
  if (!is_direct_) backend_.upload(arena.data(), memory_);
}

std::span<float> HostView::part(Arena& arena, std::size_t offset, std::size_t count) {
  if (is_direct_) return {arena.data() + offset, count};
  const std::span<float> part = std::span<float>(memory_).subspan(offset, count);
  backend_.download(part, arena.data() + offset);
  return part;
}

}  // namespace speedo
