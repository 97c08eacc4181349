#include "measure/exchange_plan.hpp"

#include <nlohmann/json.hpp>

#include <speedo/backend/backend.hpp>

#include "core/prototxt.hpp"
#include "main/parts.hpp"
#include "support/catch.hpp"

namespace speedo {
namespace {

constexpr const char* kExchangeNet = R"(
    layer { name: "data" type: "Input" top: "data"
            input_param { shape { dim: 2 dim: 1 dim: 8 dim: 8 } } }
    layer { name: "conv" type: "Convolution" bottom: "data" top: "conv"
            convolution_param { num_output: 4 kernel_size: 3 } }
    layer { name: "wide" type: "InnerProduct" bottom: "conv" top: "wide"
            inner_product_param { num_output: 100 } }
    layer { name: "thin" type: "InnerProduct" bottom: "wide" top: "thin"
            inner_product_param { num_output: 3 } }
    layer { name: "loss" type: "EuclideanLoss" bottom: "thin" bottom: "thin" top: "loss" })";

TEST_CASE("a net's exchange is told layer by layer") {
  const auto backend = trainer_parts({.threads = 1}).make_backend().value();
  NetOptions options;
  options.backend = backend.get();
  options.plan_only = true;
  const auto net = Net::create(parse_net_prototxt(kExchangeNet, "net").value(), options).value();
  const ExchangePlan plan = plan_exchange(*net, 4);
  REQUIRE(plan.layers.size() == 3);
  CHECK(plan.layers[0].name == "conv");
  CHECK(plan.layers[0].whole_bytes == 2 * 4 * (4 * 9 + 4));
  CHECK(plan.layers[0].factor_bytes == 0.0);
  // 144 inputs; two rows from each of four workers, its own sent.
  CHECK(plan.layers[1].whole_bytes == 2 * 4 * (144 * 100 + 100));
  CHECK(plan.layers[1].factor_bytes == 2 * 4 * 100 + 4 * (1 + 4) * 2 * (144 + 100));
  CHECK(plan.layers[1].travels_as_factors);
  CHECK(plan.layers[1].sent_bytes == 4 * 100 + 4 * 2 * (144 + 100));
  CHECK_FALSE(plan.layers[2].travels_as_factors);
  CHECK(plan.chosen_bytes() == plan.whole_bytes() - plan.layers[1].whole_bytes +
                                   plan.layers[1].factor_bytes);
  CHECK(to_text(plan).find("as factors") != std::string::npos);
  const nlohmann::ordered_json json = to_json(plan);
  CHECK(json["layers"][1]["travels_as"] == "factors");
  CHECK(json["layers"][0]["factor_bytes"].is_null());
  // Of so many workers all factors are more than gradient and mean.
  CHECK_FALSE(plan_exchange(*net, 100).layers[1].travels_as_factors);
}

}  // namespace
}  // namespace speedo
