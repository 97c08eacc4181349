// Data layers whose batches have several shapes: each pass computes what a net made for that shape
// alone computes with the same weights.

#include "images_of_sizes.hpp"
#include "support/deferred_backend.hpp"
#include "support/random_seed.hpp"
#include "support/reference/reference_backend.hpp"

namespace speedo {
namespace {

TEST_CASE("images of several sizes are computed as each alone") {
  const std::uint64_t seed = GENERATE(from_range(test::seeds({1})));
  CAPTURE(seed);
  Random random(seed);
  require_each_as_alone(test_backend(), random);
  const auto deferred =
      make_deferred_backend(make_reference_backend(), DeferredOrder::kComputeFirst);
  require_each_as_alone(*deferred, random);
}

TEST_CASE("a net made to test goes its own way through images of several sizes") {
  const ImageSizes sizes{{8, 8}, {12, 7}, {9, 16}};
  ImagesOfSizesFactory feeds({sizes});
  NetOptions options = options_with(feeds, test_backend());
  const auto trained = make_net(segmentation_net(), options);
  options.share_parameters = trained.get();
  options.trains = false;
  const auto tested = make_net(segmentation_net(), options);
  std::vector<float> losses;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    losses.push_back(tested->forward().value());
    CHECK(tested->blob("cut")->shape() == Shape{1, 4, sizes[i].height, sizes[i].width});
  }
  for (const float loss : losses) CHECK(step(*trained).loss == Approx(loss).epsilon(1e-5));
}

TEST_CASE("a size that the net cannot take is an error of that pass, and of no other") {
  ImagesOfSizesFactory feeds({{{8, 8}, {12, 7}, {8, 8}}});
  NetOptions options = options_with(feeds, test_backend());
  const auto net = make_net(data_layer("data") + product("ip", "data"), options);
  REQUIRE(net->forward().has_value());
  net->set_batch_span({.first = 1});
  const auto refused = net->forward();
  REQUIRE_FALSE(refused.has_value());
  INFO(refused.error().message);
  CHECK(refused.error().message.find("layer 'ip'") != std::string::npos);
  CHECK(refused.error().message.find("1 3 12 7") != std::string::npos);
  net->set_batch_span({.first = 2});
  CHECK(net->forward().has_value());
}

TEST_CASE("a layer's other size is not forgotten where the next layer's data cannot be read") {
  ImagesOfSizesFactory feeds({.sizes = {{8, 8}, {12, 7}, {12, 7}},
                              .sizes_of_truth = {{8, 8}, {8, 8}},
                              .broken_truth = 1});
  const auto net = make_net(data_layer("data") + data_layer("truth") + conv("c1", "data", 3),
                            options_with(feeds, test_backend()));
  REQUIRE(net->forward().has_value());
  const auto torn = net->forward();
  REQUIRE_FALSE(torn.has_value());
  CHECK(torn.error().message.find("torn") != std::string::npos);
  net->set_batch_span({.first = 2});
  REQUIRE(net->forward().has_value());
  CHECK(net->blob("c1")->shape() == Shape{1, 3, 12, 7});
}

TEST_CASE("a layer of one shape beside one of several") {
  require_steady_beside_varying(test_backend());
  const auto deferred =
      make_deferred_backend(make_reference_backend(), DeferredOrder::kTransferFirst);
  require_steady_beside_varying(*deferred);
}

TEST_CASE("what an Input blob was given stays where images have several sizes") {
  ImagesOfSizesFactory feeds({{{8, 8}, {12, 7}}});
  const auto net = make_net(input("given", "dim: 2 dim: 3") + data_layer("data") +
                                conv("c1", "data", 3) + product("ip", "given"),
                            options_with(feeds, test_backend()));
  const std::vector<float> given{1, 2, 3, 4, 5, 6};
  net->blob("given")->set_values(net->backend(), given);
  REQUIRE(net->forward().has_value());
  const std::vector<float> before = net->blob("ip")->values(net->backend());
  REQUIRE(net->forward().has_value());
  CHECK(net->blob("given")->values(net->backend()) == given);
  CHECK(net->blob("ip")->values(net->backend()) == before);
}

TEST_CASE("where images have several sizes, nothing relies on one of them") {
  ImagesOfSizesFactory feeds({{{8, 8}, {8, 8}}});
  const auto net =
      make_net(data_layer("data") + data_layer("truth") + product("ip", "data", "", 600),
               options_with(feeds, test_backend()));
  CHECK(net->factor_shapes().empty());
  CHECK(net->recording_obstacle().find("'data'") != std::string::npos);
}

}  // namespace
}  // namespace speedo
