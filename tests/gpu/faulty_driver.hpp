#pragma once

#include <cstddef>
#include <utility>

#include "gpu/driver/driver.hpp"

namespace speedo::test {

// What a FaultyDriver leaves out or does wrong.
enum class DriverFault {
  kNone,
  kNoWait,         // streams do not wait for events
  kNoRecord,       // events are not recorded
  kNoSynchronize,  // the host does not wait for events
  kFreesTwice,
  kFreesAtOnce,      // at the first sign: a block is freed when it has been allocated
  kKeepsMemory,      // does not free
  kKeepsStreams,     // does not destroy
  kCopiesTooMuch,    // four bytes more
  kCopiesTooLittle,  // four bytes less
  kNoZero,           // memory is not cleared
  kDeadStream,       // work is queued on a stream that was destroyed
  kSkipsGraphs,      // graphs are not launched
  kRepeatsGraphs,    // graphs are launched twice
  kKeepsGraphs,      // graphs are not destroyed
  kDeadGraph,        // a graph is destroyed before it is launched
};

// Another driver, called with a fault: what a backend with that fault would call.
class FaultyDriver final : public gpu::Driver {
 public:
  FaultyDriver(gpu::Driver& inner, DriverFault fault) : inner_(inner), fault_(fault) {}

  Result<void*> allocate(std::size_t bytes) override {
    auto memory = inner_.allocate(bytes);
    if (memory && fault_ == DriverFault::kFreesAtOnce) inner_.free(*memory);
    return memory;
  }
  Result<void*> allocate_pinned(std::size_t bytes) override {
    return inner_.allocate_pinned(bytes);
  }
  void free(void* memory) override {
    if (fault_ != DriverFault::kKeepsMemory) inner_.free(memory);
    if (fault_ == DriverFault::kFreesTwice) inner_.free(memory);
  }
  void free_pinned(void* memory) override { inner_.free_pinned(memory); }
  gpu::StreamHandle create_stream() override { return inner_.create_stream(); }
  void destroy(gpu::StreamHandle stream) override {
    if (fault_ != DriverFault::kKeepsStreams) inner_.destroy(stream);
  }
  gpu::EventHandle create_event() override { return inner_.create_event(); }
  void destroy(gpu::EventHandle event) override { inner_.destroy(event); }
  void record(gpu::EventHandle event, gpu::StreamHandle stream) override {
    if (fault_ != DriverFault::kNoRecord) inner_.record(event, stream);
  }
  void wait(gpu::StreamHandle stream, gpu::EventHandle event) override {
    if (fault_ != DriverFault::kNoWait) inner_.wait(stream, event);
  }
  bool is_done(gpu::EventHandle event) override { return inner_.is_done(event); }
  void synchronize(gpu::EventHandle event) override {
    if (fault_ != DriverFault::kNoSynchronize) inner_.synchronize(event);
  }
  void synchronize(gpu::StreamHandle stream) override { inner_.synchronize(stream); }
  void copy(gpu::StreamHandle stream, void* target, const void* source,
            std::size_t bytes) override {
    if (fault_ == DriverFault::kCopiesTooMuch) bytes += sizeof(float);
    if (fault_ == DriverFault::kCopiesTooLittle) bytes -= sizeof(float);
    inner_.copy(stream, target, source, bytes);
  }
  void zero(gpu::StreamHandle stream, void* target, std::size_t bytes) override {
    if (fault_ != DriverFault::kNoZero) inner_.zero(stream, target, bytes);
  }
  void launch(gpu::StreamHandle stream, const gpu::KernelEntry& entry, const gpu::Grid& grid,
              const void* kernel) override {
    if (fault_ == DriverFault::kDeadStream) {
      stream = inner_.create_stream();
      inner_.destroy(stream);
    }
    inner_.launch(stream, entry, grid, kernel);
  }
  void begin_capture(gpu::StreamHandle stream) override { inner_.begin_capture(stream); }
  gpu::GraphHandle end_capture(gpu::StreamHandle stream) override {
    return inner_.end_capture(stream);
  }
  void launch(gpu::StreamHandle stream, gpu::GraphHandle graph) override {
    if (fault_ == DriverFault::kSkipsGraphs) return;
    if (fault_ == DriverFault::kDeadGraph) inner_.destroy(graph);
    inner_.launch(stream, graph);
    if (fault_ == DriverFault::kRepeatsGraphs) inner_.launch(stream, graph);
  }
  void destroy(gpu::GraphHandle graph) override {
    if (fault_ != DriverFault::kKeepsGraphs) inner_.destroy(graph);
  }
  void bind_thread() override { inner_.bind_thread(); }
  void let_go() override { inner_.let_go(); }
  void fail(Error error) override { inner_.fail(std::move(error)); }
  Result<void> check() override { return inner_.check(); }

 private:
  gpu::Driver& inner_;
  const DriverFault fault_;
};

}  // namespace speedo::test
