#include "train/trainer/trainer_host_view.hpp"

#include <algorithm>
#include <utility>

#include <speedo/base/assert.hpp>

#include "base/log.hpp"

namespace speedo {

HostView::HostView(Device& device, std::size_t count, bool shares)
    : device_(device), is_direct_(device.memory() == MemoryKind::kHost), count_(count) {
  if (is_direct_) return;
  if (!shares) take_pinned(count);
  is_pinned_ = pinned_.bytes() > 0;
  if (!is_pinned_) memory_ = HostFloats(count, shares);
}

void HostView::take_pinned(std::size_t count) {
  auto taken = device_.allocate_pinned(count * sizeof(float));
  if (taken) {
    pinned_ = std::move(*taken);
  } else {
    is_refused_ = true;
    SPEEDO_WARN("the device waits while its gradients are copied: {}", taken.error().message);
  }
}

std::span<float> HostView::landing(Arena& arena) {
  if (!is_direct_) return copies();
  device_.synchronize();
  return {arena.data(), static_cast<std::size_t>(arena.size())};
}

void HostView::land(Arena& arena, std::size_t offset, std::size_t count) {
  if (is_direct_) return;
  device_.upload(arena.data() + offset, copies().subspan(offset, count));
}

std::span<float> HostView::part(Arena& arena, std::size_t offset, std::size_t count) {
  if (is_direct_) {
    device_.synchronize();
    return {arena.data() + offset, count};
  }
  const std::span<float> part = copies().subspan(offset, count);
  if (ahead_ != &arena) {
    device_.download(part, arena.data() + offset);
  } else if (!is_pinned_) {
    std::ranges::copy(pinned().subspan(offset, count), part.begin());
  }
  return part;
}

bool HostView::begin_ahead(Arena& arena) {
  end_ahead();
  if (is_direct_) return false;
  if (pinned_.bytes() == 0 && !is_refused_) take_pinned(count_);
  if (pinned_.bytes() == 0) return false;
  ahead_ = &arena;
  return true;
}

void HostView::fetch(std::size_t offset, std::size_t count) {
  SPEEDO_ASSERT(ahead_ != nullptr);
  Stream& transfer = device_.transfer();
  device_.wait(transfer, device_.record(device_.compute()));
  device_.queue_download(transfer, pinned().subspan(offset, count), ahead_->data() + offset);
  fetched_ = device_.record(transfer);
}

void HostView::end_ahead() {
  if (ahead_ == nullptr) return;
  device_.wait(fetched_);
  ahead_ = nullptr;
}

}  // namespace speedo
