#include "fuzz/plan_net.hpp"

#include <speedo/base/assert.hpp>

#include "support/generated_feeds.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo::fuzz {
namespace {

// Generated data takes memory for a batch, whatever that is, and makes two tops at most.
class SmallFeeds : public test::GeneratedFeeds {
 public:
  Result<std::unique_ptr<BatchFeed>> open(const caffe::LayerParameter& layer,
                                          const FeedOptions& options) override {
    constexpr std::uint32_t kBatchMax = 4096;
    const std::uint32_t batch = layer.data_param().batch_size();
    const bool is_small = batch > 0 && batch <= kBatchMax && options.top_count <= 2;
    if (is_small) return GeneratedFeeds::open(layer, options);
    return Error{ErrorCode::kConfig, "no batch to generate"};
  }
};

}  // namespace

void plan_net(const caffe::NetParameter& net, unsigned flags) {
  constexpr int kLayersMax = 64;
  if (net.layer_size() > kLayersMax) return;
  static const std::unique_ptr<Backend> backend = make_reference_backend();
  SmallFeeds feeds;
  NetOptions options;
  options.phase = (flags & 1U) != 0 ? Phase::kTest : Phase::kTrain;
  options.trains = (flags & 2U) == 0;
  options.backend = backend.get();
  options.feeds = &feeds;
  options.plan_only = true;
  const auto planned = Net::create(net, options);
  if (!planned) return;
  const Net::Memory memory = (*planned)->memory();
  SPEEDO_ASSERT(memory.blob_bytes >= 0 && memory.parameter_bytes >= 0);
}

}  // namespace speedo::fuzz
