#pragma once

#include <cstddef>
#include <string_view>

#include <speedo/base/result.hpp>

#include "gpu/launch/kernel.hpp"

struct CUstream_st;
struct CUevent_st;

namespace speedo::gpu {

// CUDA's own handles, so that headers need no toolkit.
using StreamHandle = CUstream_st*;
using EventHandle = CUevent_st*;

// The calls of the CUDA runtime that the backend makes, of one device. Two implementations: CUDA's,
// and the tests' recording double, which runs kernels on the host.
//
// Errors: CUDA's are sticky. The first one is kept; later calls do nothing, and what returns a
// Result says it. Thread safety: any thread; of one handle, one thread at a time, but for
// is_done() and synchronize().
class Driver {
 public:
  virtual ~Driver() = default;

  // 256-byte aligned; they hold anything. Error: kFull with the bytes asked for.
  virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual Result<void*> allocate_pinned(std::size_t bytes) = 0;
  // No queued work uses it.
  virtual void free(void* memory) = 0;
  virtual void free_pinned(void* memory) = 0;

  virtual StreamHandle create_stream() = 0;
  virtual void destroy(StreamHandle stream) = 0;
  virtual EventHandle create_event() = 0;
  virtual void destroy(EventHandle event) = 0;
  virtual void record(EventHandle event, StreamHandle stream) = 0;
  // All of an event: as it was recorded last. Requires: it was recorded.
  virtual void wait(StreamHandle stream, EventHandle event) = 0;
  virtual bool is_done(EventHandle event) = 0;
  virtual void synchronize(EventHandle event) = 0;
  virtual void synchronize(StreamHandle stream) = 0;

  // Queued on the stream, between any two of host (pinned or not) and device memory.
  // Host memory stays as it is, and is not read, until that is done.
  virtual void copy(StreamHandle stream, void* target, const void* source, std::size_t bytes) = 0;
  virtual void zero(StreamHandle stream, void* target, std::size_t bytes) = 0;
  virtual void launch(StreamHandle stream, const KernelEntry& entry, const Grid& grid,
                      const void* kernel) = 0;

  // Makes the device that of the calling thread, as its own calls do, for those of a library.
  virtual void bind_thread() = 0;

  // An error of what is queued, as a library says it, or a lack of memory in an operation that
  // cannot say so itself. The first one is kept, as if it were CUDA's.
  virtual void fail(Error error) = 0;
  // The first error, or none.
  virtual Result<void> check() = 0;
};

}  // namespace speedo::gpu
