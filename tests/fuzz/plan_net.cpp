#include "fuzz/plan_net.hpp"

#include <speedo/base/assert.hpp>

#include "support/generated_feeds.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo::fuzz {

void plan_net(const caffe::NetParameter& net, unsigned flags) {
  constexpr int kLayersMax = 64;
  if (net.layer_size() > kLayersMax) return;
  static const std::unique_ptr<Backend> backend = make_reference_backend();
  test::GeneratedFeeds feeds;
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
