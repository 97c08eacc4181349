#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "gpu/driver/driver.hpp"
#include "support/gpu/call_log.hpp"
#include "support/gpu/watched_memory.hpp"

namespace speedo::test {

// How a RecordingDriver runs what is queued.
struct RecordingOptions {
  // 0: nothing is done before somebody waits, and then no more than is waited for. Others draw the
  // order of the streams; odd ones run kernels from their last block and thread to the first.
  std::uint64_t seed = 0;
  std::size_t capacity = std::size_t{1} << 32U;  // bytes of the device's memory
  bool captures_fail = false;                    // as where CUDA cannot record a call
  bool keeps_history = false;                    // see RecordingDriver::history()
};

// A device without a device: kernels run on the host, in memory of the host, when somebody waits.
// What is wrong with a call goes into the log:
// - handles that are unknown or were destroyed, memory that is freed twice or while queued work
//   names it, what is left when the driver goes, or lets the device go;
// - events that are waited for before they were recorded, work that waits for ever;
// - copies and kernels that name memory that is not there, or leave it;
// - grids that a device would not take, shared memory that is left;
// - accesses of two streams without an order between them, one of which writes;
// - what a stream that is captured cannot hold: waits, memory taken or given back, events, copies
//   from and to the host, work elsewhere or of another thread; graphs that name memory that went;
// - calls of libraries on threads that were not bound to the device;
// - host memory that changes between the call and the copy; poison that is copied to the host.
// Addresses of device memory cannot be followed by host code. Thread safety: as Driver.
class RecordingDriver final : public gpu::Driver {
 public:
  explicit RecordingDriver(std::shared_ptr<CallLog> log, const RecordingOptions& options = {});
  ~RecordingDriver() override;

  Result<void*> allocate(std::size_t bytes) override;
  Result<void*> allocate_pinned(std::size_t bytes) override;
  void free(void* memory) override;
  void free_pinned(void* memory) override;
  gpu::StreamHandle create_stream() override;
  void destroy(gpu::StreamHandle stream) override;
  gpu::EventHandle create_event() override;
  void destroy(gpu::EventHandle event) override;
  void record(gpu::EventHandle event, gpu::StreamHandle stream) override;
  void wait(gpu::StreamHandle stream, gpu::EventHandle event) override;
  bool is_done(gpu::EventHandle event) override;
  void synchronize(gpu::EventHandle event) override;
  void synchronize(gpu::StreamHandle stream) override;
  void copy(gpu::StreamHandle stream, void* target, const void* source, std::size_t bytes) override;
  void zero(gpu::StreamHandle stream, void* target, std::size_t bytes) override;
  void launch(gpu::StreamHandle stream, const gpu::KernelEntry& entry, const gpu::Grid& grid,
              const void* kernel) override;
  void begin_capture(gpu::StreamHandle stream) override;
  gpu::GraphHandle end_capture(gpu::StreamHandle stream) override;
  void launch(gpu::StreamHandle stream, gpu::GraphHandle graph) override;
  void destroy(gpu::GraphHandle graph) override;
  void bind_thread() override;
  void let_go() override;
  void fail(Error error) override;
  Result<void> check() override;

  // A call of a library on arrays, queued: `work` follows them when it runs.
  void queue_call(gpu::StreamHandle stream, std::string name,
                  const std::vector<const void*>& arrays, std::function<void()> work);
  // From now on the device has this error, as a real one that a kernel broke.
  void break_down(Error error);
  CallLog& log() { return *log_; }
  std::size_t used_bytes() const { return used_bytes_; }
  std::int64_t launches() const { return launches_; }
  std::int64_t graph_launches() const { return graph_launches_; }
  // What was done so far, by name, in that order.
  const std::vector<std::string>& history() const { return history_; }

 private:
  using Clock = std::vector<std::uint64_t>;  // of each stream, how many pieces came before
  struct Access {
    WatchedMemory::Block* block = nullptr;
    const std::byte* first = nullptr;
    const std::byte* last = nullptr;
    bool writes = false;
  };
  struct PastAccess {
    Access access;
    std::size_t stream = 0;
    std::uint64_t time = 0;
    std::string name;
  };
  struct EventState {
    bool is_alive = true;
    std::uint64_t recorded = 0, done = 0;
    std::map<std::uint64_t, Clock> clocks;  // of each time that it was recorded
  };
  struct Piece {
    std::string name;
    std::function<void()> work;
    std::vector<Access> accesses;
    bool is_kernel = false;  // what it writes shows when it has run
    Clock queued_at;         // what the host knew to be done
    EventState* records = nullptr;
    EventState* waits_for = nullptr;
    std::uint64_t generation = 0;  // of the event
  };
  struct StreamState {
    std::size_t index = 0;
    bool is_alive = true;
    std::deque<Piece> pieces;
    Clock clock;
  };

  // A stream's work as it was captured, to be queued again.
  struct GraphState {
    bool is_alive = true;
    std::vector<Piece> pieces;
  };

  void report(std::string violation);
  // What was not given back or destroyed.
  void report_what_is_left();
  // Of a call that the thread may not make while it captures.
  void not_while_capturing(const char* call);
  void not_captured(const StreamState& stream, const char* call, bool may_be_captured);
  StreamState* alive(gpu::StreamHandle stream, const char* call);
  EventState* alive(gpu::EventHandle event, const char* call);
  void free_from(WatchedMemory& memory, void* address, const char* call);
  void push(StreamState& stream, Piece piece);
  // An access of bytes from an address; nothing, with a report, if they are not all of one block.
  std::optional<Access> access_of(const void* first, std::size_t bytes, bool writes,
                                  const std::string& name);
  void add_arrays(Piece& piece, const std::vector<const void*>& arrays);
  std::function<void()> copy_work(void* target, const void* source, std::size_t bytes);

  static bool is_blocked(const StreamState& stream);
  StreamState* draw(StreamState& wanted);
  StreamState* runnable_for(StreamState& stream);
  void run_front(StreamState& stream);
  void run_kernel(StreamState& stream, Piece& piece);
  void run_until(StreamState& stream, const std::function<bool()>& is_over);
  StreamState* stream_that_records(const EventState& event, std::uint64_t generation);
  void know(const Clock& clock);
  void note(StreamState& stream, const Piece& piece, const Access& access);
  static void merge(Clock& into, const Clock& from);
  static std::uint64_t at(const Clock& clock, std::size_t stream);

  const std::shared_ptr<CallLog> log_;
  const RecordingOptions options_;
  mutable std::recursive_mutex mutex_;  // of all below
  WatchedMemory device_{true}, pinned_{false};
  std::list<StreamState> streams_;
  std::list<EventState> events_;
  Clock host_;
  std::map<const WatchedMemory::Block*, std::vector<PastAccess>> past_;
  std::set<std::string> reported_;
  std::uint64_t draws_ = 0;
  std::size_t used_bytes_ = 0;
  std::set<std::thread::id> bound_;
  std::int64_t launches_ = 0, graph_launches_ = 0;
  std::list<GraphState> graphs_;
  StreamState* captured_ = nullptr;  // the stream that is, by a thread
  std::thread::id capturing_;
  std::vector<Piece> capture_;
  bool capture_is_sound_ = true;
  std::vector<std::string> history_;
  std::optional<Error> broken_;
};

}  // namespace speedo::test
