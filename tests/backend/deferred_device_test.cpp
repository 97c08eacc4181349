// The deferred device finds what is forgotten about streams: planted faults that a device of the
// host hides.

#include "support/deferred_device.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cmath>
#include <memory>
#include <utility>
#include <vector>

#include <speedo/backend/backend.hpp>
#include <speedo/cpu/cpu_backend.hpp>

#include "support/catch.hpp"
#include "support/deferred_backend.hpp"

namespace speedo {
namespace {

constexpr std::size_t kLength = 16;

enum class Fault {
  kNone,
  kLossReadEarly,      // no wait before the host reads the loss
  kDownloadReadEarly,  // nor before it reads what another stream downloads
  kSourceChanged,      // of an upload, before it is done
  kSourceReleased,
  kEventTooEarly,  // recorded before what it is to tell
  kEventOnWrongStream,
  kTransferDoesNotWait,  // for what it copies to be computed
  kBufferReleased,       // while queued work uses it
};

// A training reduced to its order: each step the weights w come in and the gradient 2 w w goes out
// beside the computing, which is told by its first value, the loss.
class Steps {
 public:
  Steps(Backend& backend, Fault fault)
      : backend_(backend), device_(backend.device()), fault_(fault) {
    for (Buffer* buffer : {&weights_, &gradient_, &loss_}) *buffer = made(device_.allocate(kBytes));
    incoming_ = made(device_.allocate_pinned(kBytes));
    outgoing_ = made(device_.allocate_pinned(kBytes));
  }

  // What the host has seen after `count` steps.
  std::vector<float> run(int count) {
    for (int i = 0; i < count; ++i) step(static_cast<float>(i + 1));
    return seen_;
  }

 private:
  static constexpr std::size_t kBytes = kLength * sizeof(float);
  static constexpr auto kCount = static_cast<std::int64_t>(kLength);

  static Buffer made(Result<Buffer> buffer) {
    REQUIRE(buffer.has_value());
    return std::move(*buffer);
  }
  static std::span<float> floats(Buffer& buffer) { return {buffer.as_floats(), kLength}; }

  void step(float value) {
    read_weights(value);
    compute();
    const StreamEvent left = write_gradient();
    if (fault_ == Fault::kSourceChanged) std::ranges::fill(floats(incoming_), -1.0F);
    if (fault_ == Fault::kSourceReleased) {
      incoming_ = Buffer();
      incoming_ = made(device_.allocate_pinned(kBytes));
    }

    if (fault_ != Fault::kDownloadReadEarly) device_.wait(left);
    const std::span<const float> gradient = floats(outgoing_);
    seen_.insert(seen_.end(), gradient.begin(), gradient.end());

    std::array<float, 1> loss{};
    device_.queue_download(device_.compute(), loss, loss_.as_floats());
    if (fault_ != Fault::kLossReadEarly) device_.wait(device_.record(device_.compute()));
    seen_.push_back(loss[0]);
    device_.synchronize();
  }

  void read_weights(float value) {
    std::ranges::fill(floats(incoming_), value);
    Stream& stream = fault_ == Fault::kEventOnWrongStream ? device_.compute() : device_.transfer();
    const StreamEvent early = device_.record(stream);
    device_.queue_upload(device_.transfer(), weights_.as_floats(), floats(incoming_));
    const StreamEvent late = device_.record(stream);
    device_.wait(device_.compute(), fault_ == Fault::kEventTooEarly ? early : late);
  }

  void compute() {
    scratch_ = made(device_.allocate(kBytes));
    backend_.axpby(kCount, 2.0F, weights_.as_floats(), 0.0F, scratch_.as_floats());
    backend_.zip({BinaryKind::kProduct}, kCount,
                 {weights_.as_floats(), scratch_.as_floats(), gradient_.as_floats()});
    backend_.copy(1, gradient_.as_floats(), loss_.as_floats());
    if (fault_ == Fault::kBufferReleased) scratch_ = Buffer();
  }

  StreamEvent write_gradient() {
    if (fault_ != Fault::kTransferDoesNotWait) {
      device_.wait(device_.transfer(), device_.record(device_.compute()));
    }
    device_.queue_download(device_.transfer(), floats(outgoing_), gradient_.as_floats());
    return device_.record(device_.transfer());
  }

  Backend& backend_;
  Device& device_;
  const Fault fault_;
  Buffer weights_, gradient_, loss_, scratch_, incoming_, outgoing_;
  std::vector<float> seen_;
};

std::vector<float> expected_values(int steps) {
  std::vector<float> expected;
  for (int i = 1; i <= steps; ++i) {
    expected.insert(expected.end(), kLength + 1, 2.0F * static_cast<float>(i * i));
  }
  return expected;
}

constexpr std::array kOrders{DeferredOrder::kNothingElse, DeferredOrder::kComputeFirst,
                             DeferredOrder::kTransferFirst};

std::vector<float> deferred_values(Fault fault, DeferredOrder order, int steps) {
  const auto backend = make_deferred_backend(make_cpu_backend(1), order);
  return Steps(*backend, fault).run(steps);
}

TEST_CASE("steps without a fault are right in every order") {
  CHECK(Steps(*make_cpu_backend(1), Fault::kNone).run(3) == expected_values(3));
  for (const DeferredOrder order : kOrders) {
    CHECK(deferred_values(Fault::kNone, order, 3) == expected_values(3));
  }
}

TEST_CASE("each planted fault of streams is seen on the deferred device, on the host's not") {
  const Fault fault =
      GENERATE(Fault::kLossReadEarly, Fault::kDownloadReadEarly, Fault::kSourceChanged,
               Fault::kSourceReleased, Fault::kEventTooEarly, Fault::kEventOnWrongStream,
               Fault::kTransferDoesNotWait, Fault::kBufferReleased);
  CAPTURE(static_cast<int>(fault));
  CHECK(Steps(*make_cpu_backend(1), fault).run(3) == expected_values(3));
  CHECK(std::ranges::any_of(kOrders, [&](DeferredOrder order) {
    return deferred_values(fault, order, 3) != expected_values(3);
  }));
}

TEST_CASE("what is read too early, or was released, is poison") {
  CHECK(std::isnan(poison()));
  for (const Fault fault :
       {Fault::kDownloadReadEarly, Fault::kBufferReleased, Fault::kSourceReleased}) {
    CAPTURE(static_cast<int>(fault));
    CHECK(std::isnan(deferred_values(fault, DeferredOrder::kNothingElse, 1)[0]));
  }
}

// A system call that is handed memory that cannot be read says so, and the program goes on.
TEST_CASE("the host cannot follow an address of the deferred device") {
  const auto deferred = make_deferred_backend(make_cpu_backend(1));
  auto buffer = deferred->device().allocate(kLength * sizeof(float));
  REQUIRE(buffer.has_value());
  CHECK(deferred->device().memory() == MemoryKind::kDevice);
  std::array<int, 2> ends{};
  REQUIRE(pipe(ends.data()) == 0);
  errno = 0;
  CHECK(write(ends[1], buffer->data(), sizeof(float)) == -1);
  CHECK(errno == EFAULT);
  for (const int end : ends) close(end);
}

}  // namespace
}  // namespace speedo
