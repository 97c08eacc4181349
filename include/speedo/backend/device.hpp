#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <utility>

#include <speedo/backend/buffer.hpp>
#include <speedo/base/result.hpp>

namespace speedo {

// Whose memory a device computes in.
enum class MemoryKind {
  kHost,    // the host's own: it may follow pointers there, once the work that uses it is done
  kDevice,  // only the device may follow pointers there
};

// An order of work on one device: what is queued on it is done one after the other. Two streams
// have no order between them but what Device::wait() makes. Owned by the device, which alone knows
// what it is made of (cudaStream_t).
class Stream {
 public:
  Stream() = default;
  virtual ~Stream() = default;
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;
};

// A point in a stream: done when all that was queued there before it is. A value, cheap to copy, on
// any thread; one that nobody recorded is done. It does not outlive its device.
class StreamEvent {
 public:
  StreamEvent() = default;
  // `mark`: what the device knows it by (a cudaEvent_t and its release); null: done.
  explicit StreamEvent(std::shared_ptr<const void> mark) : mark_(std::move(mark)) {}
  const void* mark() const { return mark_.get(); }

 private:
  std::shared_ptr<const void> mark_;
};

// Memory and order of one device; what is computed there is a Backend's, whose operations are
// queued on compute(). Bytes are sizes of memory, spans and pointers count floats. `float*` and
// `const float*` that are not spans point into a buffer of allocate(), spans into memory of the
// host.
//
// Whatever is queued may run at any later time, and need not run before somebody waits. The host
// knows that it is done when download(), synchronize(), wait(event) or an operation that returns a
// value comes back, or is_done() says so.
//
// Errors: only what returns a Result can fail. Thread safety: is_done() and wait(event) at any time
// on any thread, all others one thread at a time; a buffer may go on any thread.
class Device {
 public:
  virtual ~Device() = default;
  virtual MemoryKind memory() const = 0;

  // Zero-filled, 64-byte aligned. 0 bytes: an empty buffer. Buffers do not outlive their device;
  // one that goes while queued work uses it leaves that work without a result, and harms nobody
  // else. Error: kFull, with the bytes asked for.
  virtual Result<Buffer> allocate(std::size_t bytes) = 0;
  // The same of the host's memory, such that queue_upload() and queue_download() need not wait for
  // one another or for the host; for what is copied often, as it is scarcer.
  virtual Result<Buffer> allocate_pinned(std::size_t bytes) = 0;
  // As allocate(), such that other processes can be given it (Buffer::shared()) where the device
  // and the system have such memory.
  virtual Result<Buffer> allocate_shared(std::size_t bytes) { return allocate(bytes); }

  // Copies in the order of compute(). upload(): the source, of any memory of the host, is free when
  // the call returns. download(): waits; the target has its values when the call returns.
  virtual void upload(float* target, std::span<const float> source) = 0;
  virtual void download(std::span<float> target, const float* source) = 0;
  // Copies in the order of `stream`, when their turn comes. Until an event that is recorded there
  // afterwards is done, the source of an upload must stay as it is, and the target of a download
  // holds anything and must not be touched.
  virtual void queue_upload(Stream& stream, float* target, std::span<const float> source) = 0;
  virtual void queue_download(Stream& stream, std::span<float> target, const float* source) = 0;

  // What operations are queued on, and a second one, for copies beside them. Always the same two.
  virtual Stream& compute() = 0;
  virtual Stream& transfer() = 0;

  // The point behind all that has been queued on the stream.
  virtual StreamEvent record(Stream& stream) = 0;
  // What is queued on the stream from now on begins only when the event is done. Does not wait.
  virtual void wait(Stream& stream, const StreamEvent& event) = 0;
  // On the host: returns when the event is done, and with it all that was queued before it.
  virtual void wait(const StreamEvent& event) = 0;
  // Whether wait(event) would return at once. Becomes true some time, whether anybody waits or not.
  virtual bool is_done(const StreamEvent& event) = 0;
  // On the host: returns when all that was queued on both streams is done.
  virtual void synchronize() = 0;
};

}  // namespace speedo
