#include "gpu/steps/step_recorder.hpp"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

namespace speedo::gpu {

Result<std::unique_ptr<StepRecorder>> StepRecorder::make(std::unique_ptr<Driver> inner,
                                                         bool lets_go) {
  constexpr std::size_t kBytes = kNumbersMax * sizeof(std::uint64_t);
  std::unique_ptr<StepRecorder> recorder(new StepRecorder(std::move(inner), lets_go));
  SPEEDO_ASSIGN(void* const there, recorder->inner_->allocate(kBytes));
  recorder->numbers_there_ = static_cast<std::uint64_t*>(there);
  for (Slot& slot : recorder->slots_) {
    SPEEDO_ASSIGN(void* const here, recorder->inner_->allocate_pinned(kBytes));
    slot.numbers = static_cast<std::uint64_t*>(here);
    slot.copied = recorder->inner_->create_event();
  }
  return recorder;
}

StepRecorder::~StepRecorder() {
  SPEEDO_ASSERT(!is_recording_);
  forget();
  if (numbers_there_ != nullptr) inner_->free(numbers_there_);
  for (const Slot& slot : slots_) {
    if (slot.numbers == nullptr) continue;
    inner_->free_pinned(slot.numbers);
    inner_->destroy(slot.copied);
  }
  if (lets_go_) inner_->let_go();
}

void StepRecorder::forget() {
  if (graph_ != nullptr) inner_->destroy(std::exchange(graph_, nullptr));
}

void StepRecorder::begin(StreamHandle stream) {
  SPEEDO_ASSERT(!is_recording_);
  forget();
  obstacle_.clear();
  lost_.clear();
  numbers_.clear();
  frees_before_ = frees_;
  streams_.lock();  // until stop()
  stream_ = stream;
  recording_thread_ = std::this_thread::get_id();
  inner_->begin_capture(stream);
  is_recording_ = true;
}

StepRecorder::Recorded StepRecorder::end() {
  if (records_here()) stop();
  if (lost_.empty()) return {obstacle_, true};
  return {lost_, false};
}

void StepRecorder::stop() {
  graph_ = inner_->end_capture(stream_);
  is_recording_ = false;
  if (graph_ == nullptr && lost_.empty()) lost_ = "CUDA could not record it";
  if (lost_.empty()) queue_graph(numbers_);
  streams_.unlock();  // what others queue on the streams comes behind what was recorded
  if (!obstacle_.empty() || !lost_.empty()) forget();
}

bool StepRecorder::replay(std::span<const std::uint64_t> numbers) {
  SPEEDO_ASSERT(!is_recording_);
  if (graph_ == nullptr || frees_ != frees_before_) return false;
  SPEEDO_ASSERT(numbers.size() == numbers_.size());
  queue_graph(numbers);
  return true;
}

void StepRecorder::queue_graph(std::span<const std::uint64_t> numbers) {
  if (!numbers.empty()) {
    Slot& slot = slots_[next_slot_++ % kSlots];
    if (slot.is_used) inner_->synchronize(slot.copied);
    std::ranges::copy(numbers, slot.numbers);
    inner_->copy(stream_, numbers_there_, slot.numbers, numbers.size_bytes());
    inner_->record(slot.copied, stream_);
    slot.is_used = true;
  }
  inner_->launch(stream_, graph_);
}

bool StepRecorder::records_here() const {
  return is_recording_ && recording_thread_ == std::this_thread::get_id();
}

void StepRecorder::interrupt(const char* what) {
  if (!records_here()) return;
  obstacle_ = what;
  stop();
  if (lost_.empty()) return;
  inner_->fail({ErrorCode::kInternal,
                fmt::format("work on the GPU was lost when its recording ended ({}; {}): use "
                            "--cuda-graphs off",
                            what, lost_)});
}

void StepRecorder::fail(Error error) {
  if (!records_here()) return inner_->fail(std::move(error));
  if (lost_.empty()) lost_ = std::move(error).message;
}

void StepRecorder::interrupt_elsewhere(StreamHandle stream) {
  if (stream != stream_) interrupt("it uses another stream");
}

const std::uint64_t* StepRecorder::vary(std::uint64_t value) {
  if (!records_here()) return nullptr;
  if (numbers_.size() == kNumbersMax) {
    interrupt("it draws more random numbers than a recording has room for");
    return nullptr;
  }
  numbers_.push_back(value);
  return numbers_there_ + (numbers_.size() - 1);
}

bool StepRecorder::is_on_device(const void* memory, std::size_t bytes) const {
  const auto* const first = static_cast<const std::byte*>(memory);
  const std::lock_guard lock(mutex_);
  const auto behind = blocks_.upper_bound(first);
  if (behind == blocks_.begin()) return false;
  const auto& [begin, size] = *std::prev(behind);
  return first >= begin && static_cast<std::size_t>(first - begin) + bytes <= size;
}

// The calls.

Result<void*> StepRecorder::allocate(std::size_t bytes) {
  interrupt("it takes memory of the device");
  auto memory = inner_->allocate(bytes);
  if (!memory) return memory;
  const std::lock_guard lock(mutex_);
  blocks_.emplace(static_cast<const std::byte*>(*memory), bytes);
  return memory;
}

Result<void*> StepRecorder::allocate_pinned(std::size_t bytes) {
  interrupt("it takes memory that is pinned");
  return inner_->allocate_pinned(bytes);
}

void StepRecorder::free(void* memory) {
  interrupt("it gives memory of the device back");
  ++frees_;
  {
    const std::lock_guard lock(mutex_);
    blocks_.erase(static_cast<const std::byte*>(memory));
  }
  inner_->free(memory);
}

void StepRecorder::free_pinned(void* memory) {
  interrupt("it gives memory back that is pinned");
  inner_->free_pinned(memory);
}

EventHandle StepRecorder::create_event() {
  interrupt("it makes an event");
  return inner_->create_event();
}

void StepRecorder::record(EventHandle event, StreamHandle stream) {
  interrupt("it records an event");
  on_streams([&] { inner_->record(event, stream); });
}

void StepRecorder::wait(StreamHandle stream, EventHandle event) {
  interrupt("it waits for an event");
  on_streams([&] { inner_->wait(stream, event); });
}

bool StepRecorder::is_done(EventHandle event) {
  interrupt("it asks whether an event is done");
  return inner_->is_done(event);
}

void StepRecorder::synchronize(EventHandle event) {
  interrupt("the host waits for the device");
  inner_->synchronize(event);
}

void StepRecorder::synchronize(StreamHandle stream) {
  interrupt("the host waits for the device");
  on_streams([&] { inner_->synchronize(stream); });
}

void StepRecorder::copy(StreamHandle stream, void* target, const void* source,
                        std::size_t bytes) {
  interrupt_elsewhere(stream);
  if (records_here() && !(is_on_device(target, bytes) && is_on_device(source, bytes))) {
    interrupt("it copies from or to the host");
  }
  on_streams([&] { inner_->copy(stream, target, source, bytes); });
}

void StepRecorder::zero(StreamHandle stream, void* target, std::size_t bytes) {
  interrupt_elsewhere(stream);
  on_streams([&] { inner_->zero(stream, target, bytes); });
}

void StepRecorder::launch(StreamHandle stream, const KernelEntry& entry, const Grid& grid,
                          const void* kernel) {
  interrupt_elsewhere(stream);
  on_streams([&] { inner_->launch(stream, entry, grid, kernel); });
}

}  // namespace speedo::gpu
