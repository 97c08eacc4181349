#include "support/deferred_device.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <memory>
#include <utility>

#include <speedo/base/assert.hpp>

namespace speedo {
namespace {

// No more than is ever asked for in a device's life; it takes addresses and no memory.
constexpr std::size_t kAddressBytes = std::size_t{1} << 36U;
// Buffers are this far apart at least, so that an address behind the end of one is not the next's.
constexpr std::size_t kPageBytes = 4096;

void spoil(Buffer& memory) {
  std::fill_n(memory.as_floats(), memory.bytes() / sizeof(float), poison());
}

}  // namespace

float poison() { return std::bit_cast<float>(std::uint32_t{0x7fe1dead}); }

DeferredDevice::DeferredDevice(Device& inner, DeferredOrder order) : inner_(inner), order_(order) {
  SPEEDO_ASSERT(inner.memory() == MemoryKind::kHost);
  void* addresses =
      mmap(nullptr, kAddressBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  SPEEDO_ASSERT(addresses != MAP_FAILED);
  addresses_ = static_cast<char*>(addresses);
}

DeferredDevice::~DeferredDevice() {
  SPEEDO_ASSERT(memory_.empty() && pinned_ == 0);
  munmap(addresses_, kAddressBytes);
}

// Memory.

Result<Buffer> DeferredDevice::allocate(std::size_t bytes) {
  if (bytes == 0) return Buffer();
  const std::lock_guard lock(mutex_);
  SPEEDO_ASSIGN(Buffer memory, inner_.allocate(bytes));
  char* const address = addresses_ + used_bytes_;
  used_bytes_ += (bytes / kPageBytes + 2) * kPageBytes;
  SPEEDO_ASSERT(used_bytes_ <= kAddressBytes);
  memory_.emplace(address, std::move(memory));
  return Buffer(address, bytes, [this](void* gone) {
    const std::lock_guard releasing(mutex_);
    const auto found = memory_.find(static_cast<char*>(gone));
    SPEEDO_ASSERT(found != memory_.end());
    release(found->second);
    memory_.erase(found);
  });
}

Result<Buffer> DeferredDevice::allocate_pinned(std::size_t bytes) {
  if (bytes == 0) return Buffer();
  const std::lock_guard lock(mutex_);
  SPEEDO_ASSIGN(Buffer memory, inner_.allocate_pinned(bytes));
  ++pinned_;
  void* const data = memory.data();
  const auto kept = std::make_shared<Buffer>(std::move(memory));
  return Buffer(data, bytes, [this, kept](void*) {
    const std::lock_guard releasing(mutex_);
    release(*kept);
    --pinned_;
  });
}

void DeferredDevice::release(Buffer& memory) {
  spoil(memory);
  if (!compute_.pieces.empty() || !transfer_.pieces.empty()) released_.push_back(std::move(memory));
}

float* DeferredDevice::real(const float* address) {
  if (address == nullptr) return nullptr;
  const char* const place = reinterpret_cast<const char*>(address);
  const std::lock_guard lock(mutex_);
  auto found = memory_.upper_bound(place);
  SPEEDO_ASSERT(found != memory_.begin());
  --found;
  const auto offset = static_cast<std::size_t>(place - found->first);
  SPEEDO_ASSERT(offset <= found->second.bytes());
  return found->second.as_floats() + offset / sizeof(float);
}

// Copies.

void DeferredDevice::upload(float* target, std::span<const float> source) {
  queue(compute_, [this, to = real(target), kept = std::vector(source.begin(), source.end())] {
    inner_.upload(to, kept);
  });
}

void DeferredDevice::download(std::span<float> target, const float* source) {
  queue_download(compute_, target, source);
  wait(record(compute_));
}

void DeferredDevice::queue_upload(Stream& stream, float* target, std::span<const float> source) {
  queue(stream, [this, to = real(target), source] { inner_.upload(to, source); });
}

void DeferredDevice::queue_download(Stream& stream, std::span<float> target, const float* source) {
  std::ranges::fill(target, poison());
  queue(stream, [this, target, from = real(source)] { inner_.download(target, from); });
}

// Order.

void DeferredDevice::queue(Stream& stream, Work work) { queue(stream, {std::move(work), {}}); }

void DeferredDevice::queue(Stream& stream, Piece piece) {
  SPEEDO_ASSERT(&stream == &compute_ || &stream == &transfer_);
  const std::lock_guard lock(mutex_);
  auto& queue = static_cast<Queue&>(stream);
  queue.pieces.push_back(std::move(piece));
  ++queue.queued;
}

StreamEvent DeferredDevice::record(Stream& stream) {
  SPEEDO_ASSERT(&stream == &compute_ || &stream == &transfer_);
  const std::lock_guard lock(mutex_);
  auto& queue = static_cast<Queue&>(stream);
  return StreamEvent(std::make_shared<const Mark>(Mark{&queue, queue.queued}));
}

void DeferredDevice::wait(Stream& stream, const StreamEvent& event) {
  queue(stream, {[] {}, event});
}

void DeferredDevice::wait(const StreamEvent& event) {
  const std::lock_guard lock(mutex_);
  if (order_ == DeferredOrder::kComputeFirst) run_ahead(compute_);
  if (order_ == DeferredOrder::kTransferFirst) run_ahead(transfer_);
  run_until(event);
}

bool DeferredDevice::is_done(const StreamEvent& event) {
  const std::lock_guard lock(mutex_);
  if (is_over(event)) return true;
  run_one(*mark_of(event).stream);
  return false;
}

void DeferredDevice::synchronize() {
  wait(record(compute_));
  wait(record(transfer_));
}

const DeferredDevice::Mark& DeferredDevice::mark_of(const StreamEvent& event) {
  SPEEDO_ASSERT(event.mark() != nullptr);
  return *static_cast<const Mark*>(event.mark());
}

bool DeferredDevice::is_over(const StreamEvent& event) const {
  return event.mark() == nullptr || mark_of(event).stream->done >= mark_of(event).number;
}

// Runs work of the other stream where it has to wait for that. What it left in released memory does
// not stay there: that may be somebody else's.
void DeferredDevice::run_one(Queue& stream) {
  const Piece piece = std::move(stream.pieces.front());
  stream.pieces.pop_front();
  run_until(piece.after);
  piece.work();
  ++stream.done;
  std::ranges::for_each(released_, spoil);
  if (compute_.pieces.empty() && transfer_.pieces.empty()) released_.clear();
}

void DeferredDevice::run_until(const StreamEvent& event) {
  while (!is_over(event)) run_one(*mark_of(event).stream);
}

void DeferredDevice::run_ahead(Queue& stream) {
  while (!stream.pieces.empty() && is_over(stream.pieces.front().after)) run_one(stream);
}

}  // namespace speedo
