#include "gpu/driver/cuda.hpp"

#include <cuda_runtime_api.h>

#include <atomic>
#include <mutex>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include <speedo/base/assert.hpp>

namespace speedo::gpu {
namespace {

class CudaDriver final : public Driver {
 public:
  CudaDriver(int index, GpuFaultHandler on_fault) : index_(index), on_fault_(std::move(on_fault)) {}

  Result<void> start() {
    // Before it is made that of a thread, since flags count for what is initialised with them.
    // Threads that wait leave the processors to those that compute.
    hold(cudaInitDevice(index_, cudaDeviceScheduleBlockingSync, cudaInitDeviceFlagsAreValid),
         "cudaInitDevice");
    use();
    return check();
  }

  Result<void*> allocate(std::size_t bytes) override {
    return allocated("on the GPU", bytes,
                     [](void** memory, std::size_t size) { return cudaMalloc(memory, size); });
  }
  Result<void*> allocate_pinned(std::size_t bytes) override {
    return allocated("in the host's memory that can be pinned", bytes,
                     [](void** memory, std::size_t size) {
                       return cudaHostAlloc(memory, size, cudaHostAllocDefault);
                     });
  }
  void free(void* memory) override {
    if (use()) hold(cudaFree(memory), "cudaFree");
  }
  void free_pinned(void* memory) override {
    if (use()) hold(cudaFreeHost(memory), "cudaFreeHost");
  }

  StreamHandle create_stream() override {
    cudaStream_t stream = nullptr;
    if (use()) hold(cudaStreamCreateWithFlags(&stream, cudaStreamNonBlocking), "cudaStreamCreate");
    return stream;
  }
  void destroy(StreamHandle stream) override {
    if (use()) hold(cudaStreamDestroy(stream), "cudaStreamDestroy");
  }
  EventHandle create_event() override {
    cudaEvent_t event = nullptr;
    constexpr unsigned kFlags = cudaEventDisableTiming | cudaEventBlockingSync;
    if (use()) hold(cudaEventCreateWithFlags(&event, kFlags), "cudaEventCreate");
    return event;
  }
  void destroy(EventHandle event) override {
    if (use()) hold(cudaEventDestroy(event), "cudaEventDestroy");
  }
  void record(EventHandle event, StreamHandle stream) override {
    if (use()) hold(cudaEventRecord(event, stream), "cudaEventRecord");
  }
  void wait(StreamHandle stream, EventHandle event) override {
    if (use()) hold(cudaStreamWaitEvent(stream, event, 0), "cudaStreamWaitEvent");
  }
  // After a fault all is done that ever will be.
  bool is_done(EventHandle event) override {
    if (!use()) return true;
    const cudaError_t status = cudaEventQuery(event);
    if (status == cudaErrorNotReady) return false;
    hold(status, "cudaEventQuery");
    return true;
  }
  void synchronize(EventHandle event) override {
    if (use()) hold(cudaEventSynchronize(event), "cudaEventSynchronize");
  }
  void synchronize(StreamHandle stream) override {
    if (use()) hold(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  }

  void copy(StreamHandle stream, void* target, const void* source, std::size_t bytes) override {
    if (!use()) return;
    hold(cudaMemcpyAsync(target, source, bytes, cudaMemcpyDefault, stream), "cudaMemcpyAsync");
  }
  void zero(StreamHandle stream, void* target, std::size_t bytes) override {
    if (use()) hold(cudaMemsetAsync(target, 0, bytes, stream), "cudaMemsetAsync");
  }
  void launch(StreamHandle stream, const KernelEntry& entry, const Grid& grid,
              const void* kernel) override {
    if (!use()) return;
    SPEEDO_ASSERT(entry.device != nullptr);
    void* arguments[] = {const_cast<void*>(kernel)};
    hold(cudaLaunchKernel(entry.device, dim3(static_cast<unsigned>(grid.blocks)),
                          dim3(static_cast<unsigned>(grid.threads)), arguments, grid.shared_bytes,
                          stream),
         entry.name);
  }

  // Of the calling thread alone: others may allocate meanwhile.
  void begin_capture(StreamHandle stream) override {
    if (!use()) return;
    hold(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal),
         "cudaStreamBeginCapture");
    captures() = true;
    capture_failed_ = false;
  }
  GraphHandle end_capture(StreamHandle stream) override {
    captures() = captures() && use();
    if (!captures()) return nullptr;
    cudaGraph_t graph = nullptr;
    cudaGraphExec_t made = nullptr;
    hold(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
    if (graph != nullptr) {
      if (!capture_failed_) hold(cudaGraphInstantiate(&made, graph, 0), "cudaGraphInstantiate");
      hold(cudaGraphDestroy(graph), "cudaGraphDestroy");
    }
    captures() = false;
    if (!capture_failed_) return made;
    // That of the capture, which the next call would hand on.
    static_cast<void>(cudaGetLastError());
    if (made != nullptr) destroy(made);
    return nullptr;
  }
  void launch(StreamHandle stream, GraphHandle graph) override {
    if (use()) hold(cudaGraphLaunch(graph, stream), "cudaGraphLaunch");
  }
  void destroy(GraphHandle graph) override {
    if (use()) hold(cudaGraphExecDestroy(graph), "cudaGraphExecDestroy");
  }

  void bind_thread() override { use(); }

  void let_go() override {
    if (!use()) return;
    hold(cudaDeviceReset(), "cudaDeviceReset");
    current() = -1;
  }

  void fail(Error error) override {
    {
      const std::lock_guard lock(mutex_);
      if (fault_) return;
      fault_ = error;
    }
    has_failed_.store(true, std::memory_order_relaxed);
    if (on_fault_) on_fault_(error);
  }
  Result<void> check() override {
    const std::lock_guard lock(mutex_);
    if (fault_) return *fault_;
    return {};
  }

 private:
  // Makes the GPU that of this thread. False: it has failed before, and no call is made any more.
  bool use() {
    if (has_failed_.load(std::memory_order_relaxed)) return false;
    if (current() != index_) {
      hold(cudaSetDevice(index_), "cudaSetDevice");
      current() = index_;
    }
    return !has_failed_.load(std::memory_order_relaxed);
  }

  template <typename Allocate>
  Result<void*> allocated(const char* place, std::size_t bytes, const Allocate& allocate) {
    if (!use()) return check().error();
    void* memory = nullptr;
    const cudaError_t status = allocate(&memory, bytes);
    if (status == cudaSuccess) return memory;
    if (status == cudaErrorMemoryAllocation || status == cudaErrorInvalidValue) {
      // That of a call that failed, which the next one would hand on.
      static_cast<void>(cudaGetLastError());
      return Error{ErrorCode::kFull, fmt::format("no room {} for {} bytes", place, bytes)};
    }
    hold(status, "allocating memory");
    return check().error();
  }

  // The GPU that is the thread's; -1: not known.
  static int& current() {
    thread_local int index = -1;
    return index;
  }

  // Whether the thread captures: what fails then ends the capture, not the GPU.
  static bool& captures() {
    thread_local bool is_capturing = false;
    return is_capturing;
  }

  void hold(cudaError_t status, const char* call) {
    if (status == cudaSuccess) return;
    if (captures()) {
      capture_failed_ = true;
      return;
    }
    fail({ErrorCode::kInternal, fmt::format("GPU {} has failed: {} says \"{}\" ({})", index_, call,
                                            cudaGetErrorString(status), cudaGetErrorName(status))});
  }

  const int index_;
  const GpuFaultHandler on_fault_;
  std::atomic<bool> has_failed_{false};
  bool capture_failed_ = false;
  std::mutex mutex_;  // of fault_
  std::optional<Error> fault_;
};

}  // namespace

Result<std::unique_ptr<Driver>> make_cuda_driver(int index, GpuFaultHandler on_fault) {
  SPEEDO_ASSIGN(const std::vector<GpuDescription> devices, gpu_devices());
  const int count = static_cast<int>(devices.size());
  if (index < 0 || index >= count) {
    return Error{
        ErrorCode::kNotFound,
        fmt::format("there is no GPU {}: this machine has {}, numbered from 0", index, count)};
  }
  SPEEDO_TRY(check_capability(devices[static_cast<std::size_t>(index)]));
  auto driver = std::make_unique<CudaDriver>(index, std::move(on_fault));
  SPEEDO_TRY(driver->start());
  return std::unique_ptr<Driver>(std::move(driver));
}

}  // namespace speedo::gpu
