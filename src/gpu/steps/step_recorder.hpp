#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include <speedo/backend/device_steps.hpp>

#include "gpu/driver/driver.hpp"

namespace speedo::gpu {

// Another driver, one stream of which can be recorded: what a thread queues there from begin() to
// end() becomes a graph, which replay() queues at once. A call that no graph can hold ends the
// recording: what was recorded until then is queued, and that call follows as usual. Other threads'
// calls that concern streams wait until a recording is over.
// Thread safety: as Driver; begin(), end(), numbers() and replay() on one thread.
class StepRecorder final : public Driver {
 public:
  static constexpr std::size_t kNumbersMax = 256;  // of a recording
  // `lets_go`: whether the device is given up in the end. Error: kFull.
  static Result<std::unique_ptr<StepRecorder>> make(std::unique_ptr<Driver> inner,
                                                    bool lets_go = false);
  // Nothing is recorded, and all that was queued is done.
  ~StepRecorder() override;

  // Forgets what was recorded before. Requires: nothing is being recorded.
  void begin(StreamHandle stream);
  using Recorded = DeviceSteps::Recorded;
  Recorded end();
  // See Driver::vary(): those of the recording.
  std::vector<std::uint64_t> numbers() const { return numbers_; }
  // Queues the recording with these numbers. False: there is none, or memory of the driver was
  // freed since then. Requires: as many numbers.
  bool replay(std::span<const std::uint64_t> numbers);

  Result<void*> allocate(std::size_t bytes) override;
  Result<void*> allocate_pinned(std::size_t bytes) override;
  void free(void* memory) override;
  void free_pinned(void* memory) override;
  StreamHandle create_stream() override { return inner_->create_stream(); }
  void destroy(StreamHandle stream) override { inner_->destroy(stream); }
  EventHandle create_event() override;
  void destroy(EventHandle event) override { inner_->destroy(event); }
  void record(EventHandle event, StreamHandle stream) override;
  void wait(StreamHandle stream, EventHandle event) override;
  bool is_done(EventHandle event) override;
  void synchronize(EventHandle event) override;
  void synchronize(StreamHandle stream) override;
  void copy(StreamHandle stream, void* target, const void* source, std::size_t bytes) override;
  void zero(StreamHandle stream, void* target, std::size_t bytes) override;
  void launch(StreamHandle stream, const KernelEntry& entry, const Grid& grid,
              const void* kernel) override;
  void begin_capture(StreamHandle stream) override { inner_->begin_capture(stream); }
  GraphHandle end_capture(StreamHandle stream) override { return inner_->end_capture(stream); }
  void launch(StreamHandle stream, GraphHandle graph) override { inner_->launch(stream, graph); }
  void destroy(GraphHandle graph) override { inner_->destroy(graph); }
  const std::uint64_t* vary(std::uint64_t value) override;
  void bind_thread() override { inner_->bind_thread(); }
  void let_go() override { inner_->let_go(); }
  void fail(Error error) override;
  Result<void> check() override { return inner_->check(); }

 private:
  StepRecorder(std::unique_ptr<Driver> inner, bool lets_go)
      : inner_(std::move(inner)), lets_go_(lets_go) {}
  // Numbers of one replay on their way to the device.
  struct Slot {
    std::uint64_t* numbers = nullptr;
    bool is_used = false;
    EventHandle copied = nullptr;
  };
  static constexpr std::size_t kSlots = 4;

  bool records_here() const;
  // Before a call that no graph can hold.
  void interrupt(const char* what);
  // The same, if the stream is not the one that is recorded.
  void interrupt_elsewhere(StreamHandle stream);
  // A call that concerns a stream. On other threads than the one that records it waits until a
  // recording is over.
  template <typename Call>
  void on_streams(const Call& call) {
    if (records_here()) return call();
    const std::shared_lock lock(streams_);
    call();
  }
  bool is_on_device(const void* memory, std::size_t bytes) const;
  void stop();
  void queue_graph(std::span<const std::uint64_t> numbers);
  void forget();

  const std::unique_ptr<Driver> inner_;
  const bool lets_go_;
  std::uint64_t* numbers_there_ = nullptr;  // on the device
  Slot slots_[kSlots];
  std::size_t next_slot_ = 0;
  std::atomic<bool> is_recording_{false};
  std::thread::id recording_thread_;
  StreamHandle stream_ = nullptr;
  std::string obstacle_;  // what ended the recording
  std::string lost_;      // why nothing of it was done
  std::vector<std::uint64_t> numbers_;
  GraphHandle graph_ = nullptr;
  std::atomic<std::uint64_t> frees_{0};
  std::uint64_t frees_before_ = 0;  // the recording
  std::shared_mutex streams_;       // held alone by a recording
  mutable std::mutex mutex_;        // of what follows
  std::map<const std::byte*, std::size_t> blocks_;  // of the device
};

}  // namespace speedo::gpu
