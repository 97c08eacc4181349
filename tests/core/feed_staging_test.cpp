// Data layers on a device with memory of its own: batches are copied there ahead, and what a net
// reads is the same.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <speedo/base/random.hpp>
#include <speedo/core/net.hpp>

#include "caffe.pb.h"
#include "core/prototxt.hpp"
#include "support/catch.hpp"
#include "support/deferred_backend.hpp"
#include "support/kernels.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo {
namespace {

constexpr std::int64_t kImages = 3, kValues = 5;

// What all feeds of a test were asked.
struct FeedNotes {
  std::set<std::uint64_t> slow, broken;  // batches that are never ready ahead, or cannot be read
  std::vector<std::uint64_t> read;
  Device* pinned_by = nullptr;
};

float value_of(std::uint64_t batch, std::size_t i) {
  return static_cast<float>(batch * 1000 + i);
}

// Each batch is written over the one before, which is valid until then.
class RewritingFeed final : public BatchFeed {
 public:
  explicit RewritingFeed(FeedNotes& notes) : notes_(notes), memory_(kImages * kValues) {}
  const std::vector<Shape>& shapes() const override { return shapes_; }
  std::uint64_t record_count() const override { return 1000; }
  void will_need(std::uint64_t) override {}
  bool is_ready(std::uint64_t batch) override { return !notes_.slow.contains(batch); }
  Result<std::vector<std::span<const float>>> read(std::uint64_t batch) override {
    notes_.read.push_back(batch);
    if (notes_.broken.contains(batch)) return Error{ErrorCode::kData, "record 7 is torn"};
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = value_of(batch, i);
    return std::vector<std::span<const float>>{memory_};
  }

 private:
  FeedNotes& notes_;
  std::vector<Shape> shapes_{Shape{kImages, kValues}};
  std::vector<float> memory_;
};

class RewritingFeeds final : public FeedFactory {
 public:
  Result<std::unique_ptr<BatchFeed>> open(const caffe::LayerParameter&,
                                          const FeedOptions& options) override {
    notes.pinned_by = options.pinned_by;
    return std::unique_ptr<BatchFeed>(std::make_unique<RewritingFeed>(notes));
  }
  FeedNotes notes;
};

std::unique_ptr<Net> data_net(Backend& backend, RewritingFeeds& feeds, bool plan_only = false) {
  const auto message = parse_net_prototxt(
      "layer { name: 'data' type: 'Data' top: 'data' data_param { source: 'x' batch_size: 3 } }",
      "net");
  REQUIRE(message.has_value());
  NetOptions options;
  options.backend = &backend;
  options.feeds = &feeds;
  options.plan_only = plan_only;
  auto net = Net::create(*message, options);
  REQUIRE(net.has_value());
  return std::move(*net);
}

void require_batch(Net& net, std::uint64_t batch) {
  CAPTURE(batch);
  REQUIRE(net.forward().has_value());
  const std::vector<float> values = net.blob("data")->values(net.backend());
  REQUIRE(values.size() == kImages * kValues);
  for (std::size_t i = 0; i < values.size(); ++i) REQUIRE(values[i] == value_of(batch, i));
}

std::unique_ptr<Backend> deferred(DeferredOrder order) {
  return make_deferred_backend(make_reference_backend(), order);
}

constexpr auto kOrders = {DeferredOrder::kNothingElse, DeferredOrder::kComputeFirst,
                          DeferredOrder::kTransferFirst};

TEST_CASE("batches that are copied ahead are those that are asked for") {
  const auto backend = deferred(GENERATE(values<DeferredOrder>(kOrders)));
  RewritingFeeds feeds;
  feeds.notes.slow = {2, 3, 6};
  const auto net = data_net(*backend, feeds);
  for (std::uint64_t batch = 0; batch < 9; ++batch) require_batch(*net, batch);
  // Each was read once, and the last one ahead.
  CHECK(feeds.notes.read == std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9});
}

TEST_CASE("what was copied ahead is dropped where reading goes on elsewhere") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1, 2})));
  CAPTURE(seed);
  const auto backend = deferred(GENERATE(values<DeferredOrder>(kOrders)));
  Random random(seed);
  RewritingFeeds feeds;
  const auto net = data_net(*backend, feeds);
  for (int run = 0; run < 20; ++run) {
    const BatchSpan span{random.below(50), 1 + random.below(3), random.below(50)};
    if (random.below(2) == 0) feeds.notes.slow.insert(random.below(50));
    net->set_batch_span(span);
    for (std::uint64_t step = 0; step < 1 + random.below(5); ++step) {
      require_batch(*net, span.at(step));
    }
  }
}

TEST_CASE("a batch that cannot be read ahead is an error of its own pass") {
  const auto backend = deferred(DeferredOrder::kNothingElse);
  RewritingFeeds feeds;
  feeds.notes.broken = {2};
  const auto net = data_net(*backend, feeds);
  require_batch(*net, 0);
  require_batch(*net, 1);
  const auto loss = net->forward();
  REQUIRE(!loss.has_value());
  CHECK(loss.error().code == ErrorCode::kData);
  CHECK(loss.error().message.find("record 7 is torn") != std::string::npos);
  net->set_batch_span({3, 1, 4});
  require_batch(*net, 3);
}

TEST_CASE("a net ends while a batch is on its way") {
  const auto backend = deferred(DeferredOrder::kNothingElse);
  RewritingFeeds feeds;
  auto net = data_net(*backend, feeds);
  require_batch(*net, 0);
  net.reset();
  CHECK(feeds.notes.read.size() == 2);
}

TEST_CASE("memory for a batch on the device is planned, and the host's is the device's to pin") {
  RewritingFeeds feeds;
  const auto backend = deferred(DeferredOrder::kNothingElse);
  const bool plan_only = GENERATE(false, true);
  const auto net = data_net(*backend, feeds, plan_only);
  CHECK(net->memory().workspace_bytes == kImages * kValues * 4);
  CHECK(feeds.notes.pinned_by == &backend->device());
  const auto host = make_reference_backend();
  const auto other = data_net(*host, feeds, plan_only);
  CHECK(other->memory().workspace_bytes == 0);
  CHECK(feeds.notes.pinned_by == nullptr);
}

TEST_CASE("a host's own memory is not read ahead into") {
  const auto backend = make_reference_backend();
  RewritingFeeds feeds;
  const auto net = data_net(*backend, feeds);
  for (std::uint64_t batch = 0; batch < 4; ++batch) require_batch(*net, batch);
  CHECK(feeds.notes.read == std::vector<std::uint64_t>{0, 1, 2, 3});
}

}  // namespace
}  // namespace speedo
