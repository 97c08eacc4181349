#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <speedo/base/result.hpp>

#include "gpu/launch/kernel.hpp"

struct CUstream_st;
struct CUevent_st;
struct CUgraphExec_st;

namespace speedo::gpu {

// CUDA's own handles, so that headers need no toolkit.
using StreamHandle = CUstream_st*;
using EventHandle = CUevent_st*;
using GraphHandle = CUgraphExec_st*;

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

  // From begin_capture() to end_capture(), both on one thread, what is queued on the stream is not
  // done but becomes a graph, which may be launched any number of times, each after the one before.
  // Requires of that thread: meanwhile it waits for nothing, makes, records and asks no event,
  // allocates and frees nothing, queues nothing elsewhere, and copies within the device alone.
  // Null: an error.
  virtual void begin_capture(StreamHandle stream) = 0;
  virtual GraphHandle end_capture(StreamHandle stream) = 0;
  virtual void launch(StreamHandle stream, GraphHandle graph) = 0;
  virtual void destroy(GraphHandle graph) = 0;
  // Where the device finds a number that is this one now, and another one when what is being
  // recorded is queued again; null: nothing is recorded.
  virtual const std::uint64_t* vary(std::uint64_t /*value*/) { return nullptr; }

  // Makes the device that of the calling thread, as its own calls do, for those of a library.
  virtual void bind_thread() = 0;

  // Gives up the device, as if this process had never used it. Requires: all that was taken and
  // made there, by libraries too, was given back and destroyed; no call follows.
  virtual void let_go() = 0;

  // An error of what is queued, as a library says it, or a lack of memory in an operation that
  // cannot say so itself. The first one is kept, as if it were CUDA's.
  virtual void fail(Error error) = 0;
  // The first error, or none.
  virtual Result<void> check() = 0;
};

}  // namespace speedo::gpu
