#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <mutex>
#include <vector>

#include <speedo/backend/device.hpp>

namespace speedo {

// What a DeferredDevice does when somebody waits, before the work that is waited for. A stream that
// runs first goes on until it has to wait for an event that is not done.
enum class DeferredOrder { kNothingElse, kComputeFirst, kTransferFirst };

// A device on which nothing is done before somebody waits for it: the least that the contract of
// Device promises, so that a wait that was left out shows, under one order or another. Copies and
// operations are queued; is_done() runs one piece of work.
//
// The addresses that it gives out cannot be read or written: host code that follows one ends the
// program. What lies behind them is memory of the device `inner`, on which the work is done; real()
// finds it, for the calls that are queued. Poison, a NaN, is what a buffer holds once it was
// released, device or pinned, and the target of a queued download until that is done.
class DeferredDevice final : public Device {
 public:
  // `inner` outlives it and has memory of kind kHost.
  explicit DeferredDevice(Device& inner, DeferredOrder order = DeferredOrder::kNothingElse);
  // All buffers were released. Work that nobody waited for is dropped.
  ~DeferredDevice() override;

  MemoryKind memory() const override { return MemoryKind::kDevice; }
  Result<Buffer> allocate(std::size_t bytes) override;
  Result<Buffer> allocate_pinned(std::size_t bytes) override;
  void upload(float* target, std::span<const float> source) override;
  void download(std::span<float> target, const float* source) override;
  void queue_upload(Stream& stream, float* target, std::span<const float> source) override;
  void queue_download(Stream& stream, std::span<float> target, const float* source) override;
  Stream& compute() override { return compute_; }
  Stream& transfer() override { return transfer_; }
  StreamEvent record(Stream& stream) override;
  void wait(Stream& stream, const StreamEvent& event) override;
  void wait(const StreamEvent& event) override;
  bool is_done(const StreamEvent& event) override;
  void synchronize() override;

  using Work = std::function<void()>;
  void queue(Stream& stream, Work work);
  // Where the memory of an address lies that was given out; null stays null. Requires: an address
  // of a buffer that is there.
  float* real(const float* address);

 private:
  struct Piece {
    Work work;
    StreamEvent after;  // what it waits for
  };
  struct Queue : Stream {
    std::deque<Piece> pieces;
    std::uint64_t queued = 0, done = 0;  // how many pieces
  };
  // The end of a stream's piece number `number`.
  struct Mark {
    Queue* stream;
    std::uint64_t number;
  };
  static const Mark& mark_of(const StreamEvent& event);
  void queue(Stream& stream, Piece piece);
  bool is_over(const StreamEvent& event) const;
  void run_one(Queue& stream);
  void run_until(const StreamEvent& event);
  void run_ahead(Queue& stream);
  void release(Buffer& memory);

  Device& inner_;
  const DeferredOrder order_;
  std::recursive_mutex mutex_;  // of all below
  Queue compute_, transfer_;
  char* addresses_ = nullptr;  // that are given out one after the other, each once
  std::size_t used_bytes_ = 0;
  std::map<const char*, Buffer> memory_;  // of the buffers that are there, by their addresses
  std::vector<Buffer> released_;          // that queued work may use
  std::size_t pinned_ = 0;                // buffers that are there
};

// What host and device find where nothing was promised: a quiet NaN with a mark of its own.
float poison();

}  // namespace speedo
