#pragma once

#include <speedo/backend/device.hpp>

namespace speedo {

// A device whose memory is the host's and whose work is done before each call returns: every event
// is done, and nobody has to wait. What is left to say is how memory is taken and copied.
class HostDevice : public Device {
 public:
  MemoryKind memory() const final { return MemoryKind::kHost; }
  Result<Buffer> allocate_pinned(std::size_t bytes) override { return allocate(bytes); }

  void queue_upload(Stream&, float* target, std::span<const float> source) final {
    upload(target, source);
  }
  void queue_download(Stream&, std::span<float> target, const float* source) final {
    download(target, source);
  }

  Stream& compute() final { return compute_; }
  Stream& transfer() final { return transfer_; }
  StreamEvent record(Stream&) final { return {}; }
  void wait(Stream&, const StreamEvent&) final {}
  void wait(const StreamEvent&) final {}
  bool is_done(const StreamEvent&) final { return true; }
  void synchronize() final {}

 private:
  Stream compute_, transfer_;
};

}  // namespace speedo
